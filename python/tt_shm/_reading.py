"""What a process reports, by chip, at one moment, and how far that can be relied on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ._errors import InexactError
from ._tt_shm import Counters, Device, Process, ReadError, Segment, all_segments

Memory = Literal["dram", "l1"]
"""The memories that figures are about."""

_own: Process | None = None


def _forget() -> None:
    # A forked child is another process, with segments of its own.
    global _own
    _own = None


os.register_at_fork(after_in_child=_forget)


def segments(pid: int | None = None) -> tuple[list[Segment], int]:
    """The segments of a process, by default this one, and how many could not be read."""
    global _own
    if pid is not None and pid != os.getpid():
        return Process(pid).segments()
    process = _own
    if process is None or process.pid != os.getpid():
        process = _own = Process()
    return process.segments()


def is_l1(memory: str) -> bool:
    if memory not in ("dram", "l1"):
        raise ValueError(f'memory={memory!r}: "dram" or "l1"')
    return memory == "l1"


@dataclass(frozen=True)
class Bounds:
    """What is certain, and what is possible: unknown if nothing bounds it."""

    certain: int
    possible: int | None

    @property
    def exact(self) -> bool:
        return self.certain == self.possible


@dataclass(frozen=True)
class Entry:
    """One allocator on one chip."""

    segment: Segment
    device: Device
    counters: Counters


@dataclass
class Chip:
    """All allocators of a process, or of several, on one chip."""

    chip_id: int
    entries: list[Entry] = field(default_factory=list)

    @property
    def logical_id(self) -> int | None:
        return next((e.device.logical_id for e in self.entries if e.device.logical_id is not None), None)

    def used(self, l1: bool) -> int:
        return sum(entry.counters.used(l1) for entry in self.entries)

    def requested(self, l1: bool) -> int:
        return sum(entry.counters.requested(l1) for entry in self.entries)

    def peak(self, l1: bool) -> Bounds:
        """Each allocator knows its own peak. Those of two may have been at the same time, or not."""
        peaks = [entry.counters.peak(l1) for entry in self.entries]
        return Bounds(max(self.used(l1), *peaks), sum(peaks))

    def capacity(self, l1: bool) -> int | None:
        """What all of its allocators agree on."""
        told = {e.device.l1_bytes if l1 else e.device.dram_bytes for e in self.entries} - {None}
        return told.pop() if len(told) == 1 else None


@dataclass
class Reading:
    """The chips of a process and why their figures are not exact, if so."""

    chips: list[Chip]
    doubts: list[str]
    missing: str | None
    """Why nothing is known, if so."""

    @staticmethod
    def of(pid: int | None = None) -> Reading:
        found, refused = segments(pid)
        who = "this process" if pid is None or pid == os.getpid() else f"process {pid}"
        reading = Reading._of(found, who)
        if refused:
            reading.doubts.append(f"{who} has {refused} segment(s) that cannot be read")
        if not found:
            reading.missing = (
                f"{who} reports nothing: call tt_shm.track() for ttnn, or open a tt_shm.Tracker, before asking"
            )
        return reading

    @staticmethod
    def of_all() -> Reading:
        """All processes of this namespace, and this one whatever its namespace is."""
        found, refused = all_segments()
        known = {segment.identity for segment in found}
        found += [segment for segment in segments()[0] if segment.identity not in known]
        reading = Reading._of(found, "a process")
        if refused:
            reading.doubts.append(f"{refused} segment(s) cannot be read: run as their owner or as root")
        return reading

    @staticmethod
    def _of(found: Sequence[Segment], who: str) -> Reading:
        chips: dict[int, Chip] = {}
        doubts = []
        for segment in found:
            counters = _counters(segment)
            # Devices are listed before their first event, so each has its counters or nothing happened on it yet.
            for device, of_device in zip(segment.devices(), counters):
                chip = chips.setdefault(device.chip_id, Chip(device.chip_id))
                chip.entries.append(Entry(segment, device, of_device))
            if segment.is_partial():
                doubts.append(f"{who} may hold more than it reports")
            if segment.self_checks()[1]:
                doubts.append(f"figures of {who} differed from those of its allocator")
        return Reading(list(chips.values()), doubts, None)

    def select(self, device: Any) -> list[Chip]:
        """The chips that a device stands for; none if they are not known."""
        if device is None:
            return self.chips
        wanted: list[Chip] = []
        for number, is_chip_id in numbers_of(device):
            chips = [] if is_chip_id else [chip for chip in self.chips if _has_logical(chip, number)]
            chips = chips or [chip for chip in self.chips if chip.chip_id == number]
            wanted += [chip for chip in chips if chip not in wanted]
        return wanted

    def require(self, device: Any, chips: Sequence[Chip]) -> None:
        """Raises, for `strict=True`, unless everything about these chips is exact."""
        if self.missing:
            raise InexactError(self.missing)
        if not chips:
            raise InexactError(f"device {device!r} is not known: it was not opened since tracking began")
        if self.doubts:
            raise InexactError("; ".join(self.doubts))


def _counters(segment: Segment) -> list[Counters]:
    for _ in range(3):
        try:
            return segment.counters()
        except ReadError:
            # Another thread of this process is faster than we are: it needs a processor to come to an end.
            time.sleep(0.001)
    return segment.counters()


def _has_logical(chip: Chip, number: int) -> bool:
    return any(entry.device.logical_id == number for entry in chip.entries)


def numbers_of(device: Any) -> Iterable[tuple[int, bool]]:
    """Numbers that a handle stands for, and whether they are ids of chips for certain."""
    if isinstance(device, int):
        return [(device, False)]
    chip_id = getattr(device, "chip_id", None)
    if isinstance(chip_id, int):
        return [(chip_id, True)]
    # A mesh of ttnn, or one of its devices.
    for name in ("get_device_ids", "id"):
        method = getattr(device, name, None)
        if callable(method):
            told = method()
            return [(int(one), False) for one in (told if isinstance(told, Iterable) else [told])]
    if isinstance(device, Iterable) and not isinstance(device, (str, bytes)):
        return [number for one in device for number in numbers_of(one)]
    raise TypeError(f"{device!r} is no device: a number, a chip id, a handle of ttnn or of tt_shm, or several of them")
