"""A driver to put in NVML's place: written as pynvml.py into a folder that PYTHONPATH names."""

SOURCE = """
import json, os
NVML_TEMPERATURE_GPU = 0
class NVMLError(Exception):
    pass
class Record:
    def __init__(self, **fields):
        self.__dict__.update(fields)
def _cards():
    return json.loads(os.environ["FAKE_NVML"])
def nvmlInit():
    if not os.environ.get("FAKE_NVML"):
        raise NVMLError("Driver Not Loaded")
def nvmlShutdown():
    pass
def nvmlDeviceGetCount():
    if os.environ["FAKE_NVML"] == '"broken"':
        raise NVMLError("Unknown Error")
    return len(_cards())
def nvmlDeviceGetHandleByIndex(index):
    if _cards()[index].get("lost"):
        raise NVMLError("GPU is lost")
    return _cards()[index]
def nvmlDeviceGetHandleByUUID(uuid):
    return next(card for card in _cards() if "GPU-" + card["name"] == uuid)
def nvmlDeviceGetName(card):
    return card["name"].encode()
def nvmlDeviceGetUUID(card):
    return "GPU-" + card["name"]
def nvmlDeviceGetMemoryInfo(card):
    if card.get("private"):
        raise NVMLError("Insufficient Permissions")
    return Record(total=card["total"], used=card["used"], free=card["total"] - card["used"])
def nvmlDeviceGetTemperature(card, sensor):
    return card["temperature"]
def nvmlDeviceGetUtilizationRates(card):
    if card.get("load") is None:
        raise NVMLError("Not Supported")
    return Record(gpu=card["load"])
def nvmlDeviceGetPowerUsage(card):
    raise NVMLError("Not Supported")
def nvmlDeviceGetComputeRunningProcesses(card):
    return [Record(pid=pid, usedGpuMemory=size) for pid, size in card["processes"]]
def nvmlDeviceGetGraphicsRunningProcesses(card):
    return []
"""
