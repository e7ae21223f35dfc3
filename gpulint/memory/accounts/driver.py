"""What the driver says, through NVML: of a card, and of the processes on it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from gpulint.memory.accounts.records import Card, Tenant


class NoDriver(RuntimeError):
    """NVML cannot be used: the message says what is missing."""


@contextlib.contextmanager
def driver() -> Iterator[Any]:
    """The initialised `pynvml` module. Raises NoDriver with what to install or start, also where the driver ceases
    to answer within the block."""
    try:
        import pynvml  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise NoDriver("the library nvidia-ml-py is not installed: pip install nvidia-ml-py") from error
    try:
        pynvml.nvmlInit()
    except Exception as error:
        raise NoDriver(f"no NVIDIA driver answers on this machine ({error})") from error
    try:
        yield pynvml
    except pynvml.NVMLError as error:
        raise NoDriver(f"the NVIDIA driver answers with an error ({error})") from error
    finally:
        with contextlib.suppress(Exception):
            pynvml.nvmlShutdown()


def uuid_of(index: int) -> str | None:
    """NVML's name of a card that CUDA numbers `index` in this process; None where torch does not tell. Needs CUDA
    started."""
    import torch

    # Each count the cards in an order of their own, and NVML knows nothing of CUDA_VISIBLE_DEVICES.
    uuid = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    if uuid is None:
        return None
    return str(uuid) if str(uuid).startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"


def contexts() -> list[int]:
    """The devices on which this process has a context. To ask another one anything would make one there. Needs CUDA
    started."""
    import torch

    has: Any = torch._C
    return [index for index in range(torch.cuda.device_count()) if has._cuda_hasPrimaryContext(index)]


def text_of(told: Any) -> str:
    """What NVML says as text, which is bytes in old versions."""
    return told.decode() if isinstance(told, bytes) else str(told)


def read_card(nvml: Any, uuid: str) -> Card | None:
    """The card of that name with its processes; None where the driver has none, or does not tell its memory."""
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        used, total, kept = memory_on(nvml, handle)
    except nvml.NVMLError:
        return None
    tenants = (Tenant(pid, size) for pid, size in sorted(sizes_on(nvml, handle).items()))
    return Card(used, total, tuple(tenants), kept)


def sizes_on(nvml: Any, handle: Any) -> dict[int, int | None]:
    """The processes on a card, each with its bytes, None where the driver does not tell; none where it lists none."""
    sizes: dict[int, int | None] = {}
    for name in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"):
        with contextlib.suppress(nvml.NVMLError):
            for entry in getattr(nvml, name)(handle):
                # A process may be listed for compute and graphics, with the same figure.
                sizes[int(entry.pid)] = None if entry.usedGpuMemory is None else int(entry.usedGpuMemory)
    return sizes


def memory_on(nvml: Any, handle: Any) -> tuple[int, int, int]:
    """Used, total, and what the driver keeps for itself: the first version of the question adds that to what is used."""
    version = getattr(nvml, "nvmlMemory_v2", None)
    if version is not None:
        with contextlib.suppress(nvml.NVMLError):
            memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=version)
            return int(memory.used), int(memory.total), int(memory.reserved)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return int(memory.used), int(memory.total), 0


def share_of(pid: int, tenants: Sequence[Tenant], at_least: int) -> tuple[Tenant | None, str]:
    """The entry of a process in the driver's list, which has `at_least` bytes on the card, and how it was found; None, and
    why not, where the driver says nothing of it."""
    for tenant in tenants:
        if tenant.pid == pid and tenant.bytes is not None and tenant.bytes >= at_least:
            return tenant, "the driver's list of processes"
    if not tenants:
        return None, "the driver lists no processes here, as in many containers"
    if any(tenant.bytes is None for tenant in tenants):
        return None, "the driver does not tell how much each process uses, as on Windows and under MIG"
    if len(tenants) == 1 and (tenants[0].bytes or 0) >= at_least:
        # A container has numbers of its own for processes; but this one is on the card, so it is in the list.
        return tenants[0], f"the driver's list of processes, where {tenants[0].pid} is the only one"
    return None, "the driver numbers processes otherwise than this container does"
