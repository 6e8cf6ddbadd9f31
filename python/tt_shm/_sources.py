"""Who reports for this process: trackers that were opened in Python, and the tap. What only they can do is done here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from . import _tap
from ._reading import Entry
from ._tt_shm import Error, RecordError
from ._tt_shm import Tracker as _Tracker

_trackers: WeakSet[Tracker] = WeakSet()


class Tracker(_Tracker):
    __doc__ = _Tracker.__doc__

    def __init__(self, **settings: Any) -> None:
        # The settings are taken by __new__.
        _trackers.add(self)

    @classmethod
    def for_process(cls) -> Tracker:
        """The tracker of this process, which all of its libraries share: on if `TT_ALLOC_TRACKING_ENABLED` is `1`."""
        return cls(for_process=True)


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
