"""Device memory in the manner of `torch.cuda`.

Figures are those of this process (or of `pid=`), of what its allocators occupy in DRAM or, with `memory="l1"`, in L1.

`device` is a logical number, the id of a chip, a device or mesh of ttnn, or a handle of this module. Several chips, as a
mesh or `None` for all, answer for the one that holds the most: running out is decided on each chip by itself.

A figure that is not exact is what is certain of it, and `None` if nothing is known; `strict=True` raises `InexactError`
for both.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from . import _sources
from ._errors import InexactError
from ._reading import Bounds, Chip, Entry, Memory, Reading, is_l1
from ._tt_shm import Allocation, Device, chip_doubts
from ._units import format_bytes

Figure = int | None


def devices(pid: int | None = None) -> list[Device]:
    """The devices that a process has reported: one for each allocator on each chip."""
    return [entry.device for chip in Reading.of(pid).chips for entry in chip.entries]


def _most(
    device: Any, memory: Memory, pid: int | None, strict: bool, figure: Callable[[Chip, bool], Bounds]
) -> Figure:
    l1 = is_l1(memory)
    reading = Reading.of(pid)
    chips = reading.select(device)
    if strict:
        reading.require(device, chips)
    figures = [figure(chip, l1) for chip in chips]
    if not figures:
        return None
    most = max(figures, key=lambda bounds: bounds.certain)
    if strict and not all(bounds.exact for bounds in figures):
        raise InexactError(
            f"between {most.certain} and {most.possible} bytes: several allocators of the chip had their peaks at "
            "times that are not known to be the same; reset_peak_memory_stats() begins anew"
        )
    return most.certain


def memory_allocated(
    device: Any = None, *, memory: Memory = "dram", pid: int | None = None, strict: bool = False
) -> Figure:
    """Bytes that are occupied now."""

    def used(chip: Chip, l1: bool) -> Bounds:
        return Bounds(chip.used(l1), chip.used(l1))

    return _most(device, memory, pid, strict, used)


def max_memory_allocated(
    device: Any = None, *, memory: Memory = "dram", pid: int | None = None, strict: bool = False
) -> Figure:
    """The most bytes that were occupied at a time, since tracking began or `reset_peak_memory_stats()`."""
    return _most(device, memory, pid, strict, Chip.peak)


def memory_reserved(
    device: Any = None, *, memory: Memory = "dram", pid: int | None = None, strict: bool = False
) -> Figure:
    """The same as `memory_allocated`: tt-metal keeps no cache of freed memory."""
    return memory_allocated(device, memory=memory, pid=pid, strict=strict)


def max_memory_reserved(
    device: Any = None, *, memory: Memory = "dram", pid: int | None = None, strict: bool = False
) -> Figure:
    """The same as `max_memory_allocated`."""
    return max_memory_allocated(device, memory=memory, pid=pid, strict=strict)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Lets the peaks of this process, in DRAM and L1, begin anew with what is occupied now. Monitors see it, too."""
    reading = Reading.of()
    _sources.reset_peaks([entry for chip in reading.select(device) for entry in chip.entries])


_baselines: dict[tuple[int, int, str], tuple[int, int, int, int]] = {}


def _forget_baselines() -> None:
    _baselines.clear()


os.register_at_fork(after_in_child=_forget_baselines)


def _totals(figures: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Bytes allocated and freed, and how often, of the figures of a class."""
    _, live_bytes, live_count, alloc_bytes, alloc_count, *_ = figures
    return alloc_bytes, alloc_bytes - live_bytes, alloc_count, alloc_count - live_count


def reset_accumulated_memory_stats(device: Any = None, *, pid: int | None = None) -> None:
    """Lets `allocated` and `freed` begin anew, for callers in this process only: nothing is changed for others."""
    for chip in Reading.of(pid).select(device):
        for entry in chip.entries:
            for l1 in (False, True):
                for name, figures in entry.counters.classes(l1).items():
                    _baselines[entry.segment.identity, entry.device.index, name] = _totals(figures)


def _since_baseline(entry: Entry, name: str, figures: tuple[int, ...]) -> list[int]:
    base = _baselines.get((entry.segment.identity, entry.device.index, name), (0, 0, 0, 0))
    return [now - before for now, before in zip(_totals(figures), base)]


class MemoryStats(dict[str, Any]):
    """What `memory_stats` returns: a dictionary that a notebook draws."""

    exact: bool = False
    """Whether all figures are exact."""
    total: int | None = None
    """The capacity, if known."""

    def _repr_html_(self) -> str:
        from ._html import stats

        return stats(self)


def memory_stats(
    device: Any = None, *, memory: Memory = "dram", pid: int | None = None, strict: bool = False
) -> MemoryStats:
    """Statistics by the names that `torch.cuda.memory_stats` has, for `all` and for each class of memory.

    `allocated_bytes` are occupied, `requested_bytes` is what was asked for; `current`, `peak`, `allocated` and `freed`.
    What is not counted is `None`. Circular buffers are `current` while their program is resident, and `allocated` when
    the program allocates them. Empty if nothing is known.
    """
    l1 = is_l1(memory)
    reading = Reading.of(pid)
    chips = reading.select(device)
    if strict:
        reading.require(device, chips)
    stats = MemoryStats()
    if not chips:
        return stats
    chip = max(chips, key=lambda chip: (chip.used(l1), chip.peak(l1).certain))
    peak = chip.peak(l1)
    if strict and not peak.exact:
        raise InexactError(f"the peak is between {peak.certain} and {peak.possible} bytes")
    stats.exact = peak.exact and not reading.doubts
    stats.total = chip.capacity(l1)
    by_class: dict[str, dict[str, Figure]] = {}
    basis = 0
    for entry in chip.entries:
        for name, figures in entry.counters.classes(l1).items():
            current, _, live_count, _, _, class_peak, requested, requested_basis = figures
            allocated, freed, allocations, frees = _since_baseline(entry, name, figures)
            # The peak of circular buffers is of all that were allocated, not of those that were resident; two
            # allocators may have had theirs at different times.
            known_peak = None if name == "cb" or len(chip.entries) > 1 else class_peak
            one = {
                "current": current,
                "allocated": allocated,
                "freed": freed,
                "requested": requested if name != "cb" else current,
                "live": live_count,
                "allocations": allocations,
                "frees": frees,
            }
            sums = by_class.setdefault(name, dict.fromkeys(one, 0))
            for key, value in one.items():
                sums[key] = (sums[key] or 0) + value
            sums["peak"] = known_peak
            basis += requested_basis
    everything: dict[str, Figure] = {
        key: sum(sums[key] or 0 for sums in by_class.values()) for key in next(iter(by_class.values())) if key != "peak"
    }
    everything.update(current=chip.used(l1), peak=peak.certain, requested=chip.requested(l1))
    for name, sums in {"all": everything, **by_class}.items():
        stats[f"allocated_bytes.{name}.current"] = sums["current"]
        stats[f"allocated_bytes.{name}.peak"] = sums["peak"]
        stats[f"allocated_bytes.{name}.allocated"] = sums["allocated"]
        stats[f"allocated_bytes.{name}.freed"] = sums["freed"]
        stats[f"requested_bytes.{name}.current"] = sums["requested"]
        for what in ("peak", "allocated", "freed"):
            stats[f"requested_bytes.{name}.{what}"] = None
        stats[f"allocation.{name}.current"] = sums["live"]
        stats[f"allocation.{name}.peak"] = None
        stats[f"allocation.{name}.allocated"] = sums["allocations"]
        stats[f"allocation.{name}.freed"] = sums["frees"]
    for what in ("current", "peak", "allocated", "freed"):
        stats[f"reserved_bytes.all.{what}"] = stats[f"allocated_bytes.all.{what}"]
    stats["num_ooms"] = sum(entry.counters.failed_allocs for entry in chip.entries)
    stats["num_alloc_retries"] = 0
    stats["exact"] = stats.exact
    stats["basis"] = "occupied" if basis == 0 else "requested"
    stats["memory"] = memory
    stats["chip_id"] = chip.chip_id
    stats["device"] = chip.logical_id
    return stats


def memory_stats_as_nested_dict(
    device: Any = None, *, memory: Memory = "dram", pid: int | None = None, strict: bool = False
) -> dict[str, Any]:
    """The same with a dictionary for each part of a name."""
    nested: dict[str, Any] = {}
    for key, value in memory_stats(device, memory=memory, pid=pid, strict=strict).items():
        *path, last = key.split(".")
        inner = nested
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return nested


def memory_summary(device: Any = None, abbreviated: bool = False, *, pid: int | None = None) -> str:
    """A table for people, of DRAM and L1."""
    lines: list[str] = []
    head = f"{'':24}{'current':>12}{'peak':>12}{'allocated':>12}{'freed':>12}"
    memories: tuple[Memory, Memory] = ("dram", "l1")
    for memory in memories:
        stats = memory_stats(device, memory=memory, pid=pid)
        if not stats:
            continue
        if not lines:
            number = stats["device"] if stats["device"] is not None else hex(stats["chip_id"])
            lines += [f"device {number}{'' if stats.exact else ' (not exact: at least)'}", head]
        names = [key.split(".")[1] for key in stats if key.startswith("allocated_bytes.") and key.endswith(".current")]
        for name in names[:1] if abbreviated else names:
            label = memory if name == "all" else f"  {name}"
            parts = [stats[f"allocated_bytes.{name}.{what}"] for what in ("current", "peak", "allocated", "freed")]
            lines.append(f"{label:24}" + "".join(f"{format_bytes(part):>12}" for part in parts))
        lines.append(f"{'  requested':24}{format_bytes(stats['requested_bytes.all.current']):>12}")
        lines.append(f"{'  capacity':24}{format_bytes(stats.total):>12}")
        failed = stats["num_ooms"]
    if not lines:
        return "nothing is known: " + (Reading.of(pid).missing or "no device was opened since tracking began")
    return "\n".join([*lines, f"failed allocations: {failed}"])


class MemoryInfo(tuple[Figure, Figure]):
    """What `mem_get_info` returns: free and total bytes; `exact` tells whether nothing else can be in use."""

    doubts: tuple[str, ...] = ()
    """Why less may be free than this says."""

    @property
    def exact(self) -> bool:
        return self[0] is not None and not self.doubts


_root = "/"


def mem_get_info(device: Any = None, *, memory: Memory = "dram", strict: bool = False) -> MemoryInfo:
    """Bytes of a device that are free and that there are, with what all processes hold that report.

    Where a process holds the chip that does not report, as the driver or tt-metal tell, or one cannot be read, no more than
    that is free, perhaps less: `exact` is false and `doubts` says why. Of several chips, the one with the least left.
    """
    l1 = is_l1(memory)
    own, everybody = Reading.of(), Reading.of_all()
    selected = own.select(device) or everybody.select(device)
    if strict:
        everybody.require(device, selected)
    others = chip_doubts(root=_root) if selected else {}
    doubts = [*everybody.doubts, *(doubt for chip in selected for doubt in others.get(chip.chip_id, []))]
    if strict and doubts:
        raise InexactError("; ".join(dict.fromkeys(doubts)))
    least: tuple[Figure, Figure] = (None, None)
    for chip in selected:
        total = chip.capacity(l1)
        if total is None:
            if strict:
                raise InexactError(f"the capacity of chip {chip.chip_id:#x} is not known")
            continue
        used = sum(other.used(l1) for other in everybody.chips if other.chip_id == chip.chip_id)
        free = max(0, total - used)
        if least[0] is None or free < least[0]:
            least = (free, total)
    info = MemoryInfo(least)
    info.doubts = tuple(dict.fromkeys(doubts))
    return info


class LiveAllocations(list[Allocation]):
    """What is live, oldest first; `exact` tells whether that is all."""

    exact: bool = True


_CLASSES = {"dram": ("dram", "trace"), "l1": ("l1", "l1_small", "cb")}


def live_allocations(
    device: Any = None, *, memory: Memory | None = None, pid: int | None = None, strict: bool = False
) -> LiveAllocations:
    """Everything that is live on a device (default: all), in one memory or in all."""
    if memory is not None:
        is_l1(memory)
    reading = Reading.of(pid)
    chips = reading.select(device)
    if strict:
        reading.require(device, chips)
    wanted = {(entry.segment.identity, entry.device.index) for chip in chips for entry in chip.entries}
    found = LiveAllocations()
    for segment in {entry.segment.identity: entry.segment for chip in chips for entry in chip.entries}.values():
        live = segment.live()
        found.exact &= live.exact
        for one in live.allocations():
            is_in = memory is None or one.kind in _CLASSES[memory]
            if is_in and (segment.identity, one.device) in wanted:
                found.append(one)
    if strict and not found.exact:
        raise InexactError("the list of what is live is not complete")
    return found


def memory_snapshot(device: Any = None, *, pid: int | None = None) -> list[dict[str, Any]]:
    """What is live, by device and class, in the form of `torch.cuda.memory_snapshot`."""
    parts: dict[tuple[int | None, str], dict[str, Any]] = {}
    for one in live_allocations(device, pid=pid):
        if one.kind.startswith("kernel") or one.kind == "system_memory":
            continue
        part = parts.setdefault(
            (one.chip_id, one.kind),
            {
                "device": one.logical_id,
                "chip_id": one.chip_id,
                "segment_type": one.kind,
                "allocated_size": 0,
                "active_size": 0,
                "requested_size": 0,
                "blocks": [],
            },
        )
        part["allocated_size"] += one.size
        part["active_size"] += one.size
        part["requested_size"] += one.requested
        part["blocks"].append(
            {
                "address": one.address,
                "size": one.size,
                "requested_size": one.requested,
                "state": "active_allocated",
                "name": one.name,
                "site": one.site,
                "age_ns": one.age_ns,
            }
        )
    return list(parts.values())
