"""Events of a process as they happen."""

from __future__ import annotations

from ._reading import segments
from ._tt_shm import Error, Follower


def follow(*, pid: int | None = None, position: int | None = None, timeout: float | None = None) -> Follower:
    """An iterator over the events of a process: from now on, or after a position (0: the oldest that is kept).

    It waits for events without the interpreter's lock, and ends with the process, or when nothing has happened for
    `timeout` seconds. `missed` tells how many events were overwritten before they were read.
    """
    found, _ = segments(pid)
    if not found:
        raise Error("the process reports nothing: call tt_shm.track() for ttnn, or open a tt_shm.Tracker")
    return Follower(max(found, key=lambda segment: segment.head()), position, timeout)
