"""Events and live lists as NumPy structured arrays, and thereby for pandas and Polars.

An array is a copy: what is in shared memory changes while it is looked at, so no view of it is given. There is one copy, out of
shared memory into the array. Arrays of events may be changed; those of live lists are read-only, as the list has them, too.
NumPy is needed for this module only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._errors import InexactError
from ._reading import segments
from ._tt_shm import EVENT_KINDS, MEMORY_CLASSES, Error, Follower, Live, Segment

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

FIELDS: list[tuple[str, str]] = [
    ("position", "<u8"),
    ("time", "<u8"),
    ("kind", "u1"),
    ("memory", "u1"),
    ("flags", "u1"),
    ("device", "u1"),
    ("name", "<u2"),
    ("site", "<u2"),
    ("id", "<u8"),
    ("size", "<u8"),
    ("address", "<u8"),
    ("aux", "<u8"),
    ("row", "<u4"),
    ("cores", "<u2"),
    ("place", "<u2"),
]
"""The fields of an event and of a row of the live list, as docs/layout.md describes them. Times are ticks; see `Records`."""


@dataclass(frozen=True)
class Records:
    """Events or live allocations of one segment."""

    array: NDArray[numpy.void]
    """By `FIELDS`. Kinds, classes and names are numbers."""
    names: dict[int, str]
    """The names that the array has by number."""
    time_ns: NDArray[numpy.uint64]
    """The times of the array as `time.monotonic_ns()` has them."""
    exact: bool
    """Whether nothing is missing."""
    missed: int
    """Events that were overwritten before they could be read, or allocations that the process had no room to list."""
    segment: Segment

    def __len__(self) -> int:
        return len(self.array)

    def columns(self) -> dict[str, Any]:
        """The columns that people want, with numbers resolved: kind, memory, device, name, size, time ..."""
        array = self.array
        devices = self.segment.devices()
        logical = {device.index: device.logical_id for device in devices}
        return {
            "time_ns": self.time_ns,
            "kind": [EVENT_KINDS.get(code) for code in array["kind"].tolist()],
            "memory": [MEMORY_CLASSES.get(code) for code in array["memory"].tolist()],
            "device": [logical.get(index) for index in array["device"].tolist()],
            "name": [self.names.get(number) for number in array["name"].tolist()],
            "site": [self.names.get(number) for number in array["site"].tolist()],
            "id": array["id"].copy(),
            "size": array["size"].copy(),
            "address": array["address"].copy(),
            "cores": array["cores"].copy(),
        }

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` of `columns()`. `pandas.DataFrame(records.array)` has all fields, as numbers."""
        import pandas

        return pandas.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """A `polars.DataFrame` of `columns()`. `polars.DataFrame(records.array)` has all fields, as numbers."""
        import polars

        return polars.DataFrame(self.columns(), infer_schema_length=None)


def _records(segment: Segment, data: bytearray | Live, exact: bool, missed: int) -> Records:
    import numpy

    array = numpy.frombuffer(memoryview(data), dtype=numpy.dtype(FIELDS))
    numbers = {int(number) for field in ("name", "site") for number in numpy.unique(array[field])}
    names = {number: name for number in numbers if (name := segment.name(number)) is not None}
    times = numpy.array(segment.monotonic_ns(array["time"].tolist()), dtype=numpy.uint64)
    return Records(array, names, times, exact, missed, segment)


def _segment(pid: int | None) -> Segment:
    found, _ = segments(pid)
    if not found:
        raise Error("the process reports nothing: call tt_shm.track() for ttnn, or open a tt_shm.Tracker")
    # The one with the most to tell: two trackers in a process are rare, and each has events of its own.
    return max(found, key=lambda segment: segment.head())


def live(*, pid: int | None = None, segment: Segment | None = None, strict: bool = False) -> Records:
    """Everything that is live in a process, oldest first."""
    segment = segment or _segment(pid)
    list_ = segment.live()
    if strict and not list_.exact:
        raise InexactError("the list of what is live is not complete")
    return _records(segment, list_, list_.exact, list_.unlisted)


def events(
    *, pid: int | None = None, segment: Segment | None = None, position: int = 0, limit: int = 1 << 20
) -> Records:
    """The latest events of a process, oldest first: those after a position, or all that the ring still has."""
    segment = segment or _segment(pid)
    follower = Follower(segment, position)
    data = follower.read(limit)
    missed = follower.missed
    return _records(segment, data, missed == 0, missed)
