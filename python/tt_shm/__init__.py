"""Device memory of Tenstorrent accelerators, exact and live.

    import tt_shm
    tt_shm.track()                              # for an unmodified ttnn; hosts of their own open a tt_shm.Tracker
    tt_shm.memory_allocated()                   # bytes occupied on the device, as torch.cuda has it
    with tt_shm.step("prefill") as step: ...
    print(step.peak, step.exact, step.composition)
"""

from ._errors import InexactError
from ._follow import follow
from ._reading import Memory
from ._sources import Tracker
from ._step import Part, Step, StepMemory, step
from ._tap import track, untrack
from ._tt_shm import (
    Allocation,
    Counters,
    Device,
    Error,
    Event,
    Follower,
    OpenError,
    ReadError,
    RecordError,
    Segment,
    TrackerDevice,
    __version__,
)
from ._units import format_bytes, parse_bytes
from .stats import (
    LiveAllocations,
    MemoryInfo,
    MemoryStats,
    devices,
    live_allocations,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)

__all__ = [
    "Allocation",
    "Counters",
    "Device",
    "Error",
    "Event",
    "Follower",
    "InexactError",
    "LiveAllocations",
    "Memory",
    "MemoryInfo",
    "MemoryStats",
    "OpenError",
    "Part",
    "ReadError",
    "RecordError",
    "Segment",
    "Step",
    "StepMemory",
    "Tracker",
    "TrackerDevice",
    "__version__",
    "devices",
    "follow",
    "format_bytes",
    "live_allocations",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "parse_bytes",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "step",
    "track",
    "untrack",
]
