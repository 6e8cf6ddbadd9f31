"""Who reports for this process: trackers that were opened in Python, and the tap. What only they can do is done here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from . import _tap
from ._reading import Entry
from ._tt_shm import Error, RecordError
from ._tt_shm import Tracker as _Tracker

if TYPE_CHECKING:
    # In Python 3.10 it is not there yet.
    from typing_extensions import Self

_trackers: WeakSet[Tracker] = WeakSet()


class Tracker(_Tracker):
    __doc__ = _Tracker.__doc__

    beside_tap: bool

    def __new__(cls, *, beside_tap: bool = False, **settings: Any) -> Self:
        tracker = super().__new__(cls, **settings)
        tracker.beside_tap = beside_tap
        return tracker

    def __init__(self, *, beside_tap: bool = False, **settings: Any) -> None:
        """With `beside_tap` it reports no memory of tt-metal's allocators, and a tap in this process goes on reporting those.
        Without it, the tap stands back, so that nothing counts twice."""
        _trackers.add(self)
        if not beside_tap and self.is_enabled:
            _tap.untrack()

    @classmethod
    def for_process(cls) -> Tracker:
        """The tracker of this process, which all of its libraries share: on if `TT_ALLOC_TRACKING_ENABLED` is `1`."""
        return cls(for_process=True)


def _reports_by_itself() -> bool:
    """Whether a tracker is open that stands for what tt-metal allocates."""
    return any(not tracker.beside_tap and tracker.segment_path is not None for tracker in list(_trackers))


_tap.reports_by_itself = _reports_by_itself


def _writers() -> dict[str, Tracker]:
    return {str(tracker.segment_path): tracker for tracker in list(_trackers) if tracker.segment_path is not None}


def reset_peaks(entries: Sequence[Entry]) -> None:
    """Resets the peaks of these devices."""
    writers = _writers()
    for entry in entries:
        tracker = writers.get(str(entry.segment.path))
        if tracker is not None:
            tracker.reset_peaks_of(entry.device.index)
        elif entry.segment.source != "tap" or not _tap.reset_peaks(entry.device.index):
            raise Error("the peaks of this process are those of a tracker that was not opened in Python, which has to reset them")


def marker(phase: str, number: int, name: str) -> None:
    """Puts a marker into all segments of this process."""
    for tracker in list(_trackers):
        # A forked child that could make no segment has nowhere to put it.
        with suppress(RecordError):
            tracker.marker(phase, number, name)
    _tap.marker(phase, number, name)
