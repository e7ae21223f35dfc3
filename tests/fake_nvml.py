"""A driver to put in NVML's place: written as pynvml.py into a folder that PYTHONPATH names."""

SOURCE = """
import json, os
NVML_TEMPERATURE_GPU = 0
nvmlMemory_v2 = 2
class NVMLError(Exception):
    pass
class Record:
    def __init__(self, **fields):
        self.__dict__.update(fields)
def _cards():
    return json.loads(os.environ.get("FAKE_NVML") or "null")
def nvmlInit():
    if _cards() is None:
        raise NVMLError("Driver Not Loaded")
def nvmlShutdown():
    pass
def nvmlDeviceGetCount():
    if _cards() == "broken":
        raise NVMLError("Unknown Error")
    return len(_cards())
def nvmlDeviceGetHandleByIndex(index):
    if _cards()[index].get("lost"):
        raise NVMLError("GPU is lost")
    return _cards()[index]
def nvmlDeviceGetHandleByUUID(uuid):
    for card in _cards():
        if "GPU-" + card["name"] == uuid:
            return card
    raise NVMLError("Not Found")
def nvmlDeviceGetName(card):
    return card["name"].encode()
def nvmlDeviceGetUUID(card):
    return "GPU-" + card["name"]
def nvmlDeviceGetMemoryInfo(card, version=1):
    if card.get("private"):
        raise NVMLError("Insufficient Permissions")
    free = card["total"] - card["used"]
    return Record(total=card["total"], used=card["used"], free=free, reserved=card.get("reserved", 0))
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
    raise NVMLError("Not Supported")
"""
