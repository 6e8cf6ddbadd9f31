"""Peaks of a step: `with tt_shm.step("prefill") as s: ...`, and what they were made of."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from . import _sources
from ._errors import InexactError
from ._reading import Memory, is_l1, numbers_of
from ._tt_shm import Error, StepDevice, StepLevel, StepSegment, Watch
from ._units import format_bytes

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Part:
    """A part of a peak: buffers with one name, or the circular buffers of programs with one name."""

    name: str | None
    kind: str
    bytes: int
    count: int


@dataclass(frozen=True)
class StepMemory:
    """What a step did to one memory of one chip."""

    chip_id: int | None
    device: int | None
    memory: Memory
    begin: int
    """Bytes occupied when it began."""
    end: int | None
    """Bytes occupied when it ended."""
    peak: int
    """The most bytes that were occupied at a time, for certain."""
    possible: int | None
    """The most that is possible; unknown if nothing bounds it."""
    peak_time_ns: int | None
    """When the peak was reached, as `time.monotonic_ns()` has it; unknown if it was there at the beginning."""
    parts: tuple[Part, ...] | None
    """What the peak was made of, most bytes first; unknown if events were missed."""

    @property
    def exact(self) -> bool:
        return self.peak == self.possible

    @property
    def added(self) -> int:
        """The peak above what was occupied at the beginning."""
        return max(0, self.peak - self.begin)

    @property
    def left_over(self) -> int | None:
        """What more is occupied at the end than at the beginning."""
        return None if self.end is None else self.end - self.begin


def _joined(memory: Memory, entries: Sequence[tuple[StepDevice, StepLevel]]) -> StepMemory:
    """All allocators of one chip."""
    first = entries[0][0]
    levels = [level for _, level in entries]
    # Idle allocators, such as those of a mesh that was closed, do not make it unclear when the others had their peaks.
    busy = [level for level in levels if level.low or level.high != 0] or levels[:1]
    begin = sum(level.begin for level in levels)
    ends = [level.end for level in levels]
    end = None if None in ends else sum(end for end in ends if end is not None)
    highs = [level.high for level in levels]
    possible = None if None in highs else sum(high for high in highs if high is not None)
    single = busy[0] if len(busy) == 1 else None
    parts = None
    if single is not None and single.parts is not None:
        parts = tuple(Part(name, kind, size, count) for kind, name, size, count in single.parts)
    return StepMemory(
        chip_id=first.chip_id,
        device=first.logical_id,
        memory=memory,
        begin=begin,
        end=end,
        peak=max(begin, end or 0, *(level.low for level in levels)),
        possible=possible,
        peak_time_ns=single.peak_time_ns if single is not None else None,
        parts=parts,
    )


class Step:
    """A step, and after its end what it did to the memory of this process's devices.

    `peak`, `composition` and `exact` are those of DRAM (or of `memory`) on the chip with the largest peak (of `device`, or
    of all). `None` as long as nothing is known: before its end, and if the process reports nothing.
    """

    def __init__(self, name: str, device: Any, memory: Memory, pid: int | None, strict: bool) -> None:
        is_l1(memory)
        self.name = name
        self.memory = memory
        self.missed = 0
        """Events that were overwritten before they could be read."""
        self.events = 0
        self._device, self._pid, self._strict = device, pid, strict
        self._number = next(_numbers)
        self._watch: Watch | None = None
        self._began_ns = time.monotonic_ns()
        self._levels: list[StepMemory] = []

    def __enter__(self) -> Step:
        self._began_ns = time.monotonic_ns()
        self._watch = Watch(self._pid)
        if self._pid is None:
            _sources.marker("begin", self._number, self.name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._watch is None:
            raise Error("this step has not begun")
        if self._pid is None:
            _sources.marker("end", self._number, self.name)
        self._take(self._watch.end() or [])
        if self._strict and kind is None and not self.exact:
            raise InexactError(f"step {self.name!r}: the peak is not exact: {self!r}")

    def _take(self, segments: Sequence[StepSegment]) -> None:
        self.missed = sum(segment.missed for segment in segments)
        self.events = sum(segment.events for segment in segments)
        chips: dict[int | None, list[StepDevice]] = {}
        for segment in segments:
            for device in segment.devices:
                chips.setdefault(device.chip_id, []).append(device)
        self._levels = [
            _joined(memory, [(device, device.dram if memory == "dram" else device.l1) for device in devices])
            for devices in chips.values()
            for memory in _MEMORIES
        ]

    def of(self, device: Any = None, memory: Memory | None = None) -> StepMemory | None:
        """What it did to a device: of several, the one with the largest peak. `None` if that is not known."""
        return max(self.levels(device, memory), key=lambda level: level.peak, default=None)

    def levels(self, device: Any = None, memory: Memory | None = None) -> list[StepMemory]:
        """What it did to each chip of a device, or to all of them."""
        memory = memory or self.memory
        is_l1(memory)
        levels = [level for level in self._levels if level.memory == memory]
        if device is not None:
            wanted = list(numbers_of(device))
            by_number = [one for one in levels if any(one.device == number and not sure for number, sure in wanted)]
            levels = by_number or [one for one in levels if any(one.chip_id == number for number, _ in wanted)]
        return levels

    def age_ns(self) -> int:
        """How long ago it began."""
        return time.monotonic_ns() - self._began_ns

    @property
    def devices(self) -> list[StepMemory]:
        """All chips and memories."""
        return list(self._levels)

    def _main(self) -> StepMemory | None:
        return self.of(self._device)

    @property
    def peak(self) -> int | None:
        main = self._main()
        return None if main is None else main.peak

    @property
    def exact(self) -> bool:
        main = self._main()
        return main is not None and main.exact

    @property
    def added(self) -> int | None:
        main = self._main()
        return None if main is None else main.added

    @property
    def left_over(self) -> int | None:
        main = self._main()
        return None if main is None else main.left_over

    @property
    def parts(self) -> tuple[Part, ...] | None:
        main = self._main()
        return None if main is None else main.parts

    @property
    def composition(self) -> dict[str | None, int] | None:
        """Bytes of the peak by name, most first; `None` is what has no name. Unknown if events were missed."""
        parts = self.parts
        if parts is None:
            return None
        names: dict[str | None, int] = {}
        for part in parts:
            names[part.name] = names.get(part.name, 0) + part.bytes
        return dict(sorted(names.items(), key=lambda item: -item[1]))

    def __repr__(self) -> str:
        main = self._main()
        if main is None:
            return f"<tt_shm.Step {self.name!r}: nothing is known>"
        peak = f"{'' if main.exact else 'at least '}{format_bytes(main.peak)}"
        left = format_bytes(main.left_over)
        return f"<tt_shm.Step {self.name!r}: peak {peak} of {main.memory}, {left} left over>"

    def _repr_html_(self) -> str:
        from ._html import step

        return step(self)


_MEMORIES: tuple[Memory, Memory] = ("dram", "l1")


def step(
    name: str, device: Any = None, *, memory: Memory = "dram", pid: int | None = None, strict: bool = False
) -> Step:
    """A step of this process (or of `pid`), to be used as `with tt_shm.step("prefill") as s:`.

    A thread follows the events meanwhile, without the interpreter's lock. Other steps and peaks are not disturbed. Monitors
    see markers at its beginning and its end. With `strict`, an end whose peak is not exact raises `InexactError`.
    """
    return Step(name, device, memory, pid, strict)
