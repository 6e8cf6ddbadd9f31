"""Events as objects, and events and live lists as arrays."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

import tt_shm


def test_events_in_order_with_names_and_times(tracker, device) -> None:
    begin = time.monotonic_ns()
    tracker.alloc(device, 1, 5000, bytes_per_bank=1024, name="weights", address=0x40)
    tracker.free(device, 1)
    follower = tt_shm.follow(position=0, timeout=0)
    alloc, free = follower
    assert (alloc.kind, alloc.memory, alloc.id, alloc.size, alloc.requested) == ("ALLOC", "dram", 1, 12288, 5000)
    assert (alloc.name, alloc.address, alloc.device) == ("weights", 0x40, 0)
    assert (free.kind, free.size, free.address, free.position) == ("FREE", 12288, None, alloc.position + 1)
    # Within what the two readings of the clock are apart.
    assert begin - 1_000_000 <= alloc.time_ns <= free.time_ns <= time.monotonic_ns() + 1_000_000
    assert (follower.missed, follower.position) == (0, free.position)


def test_a_follower_waits_without_the_interpreters_lock(tracker, device) -> None:
    follower = tt_shm.follow()
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(next(follower).id))
    thread.start()
    # Python code runs meanwhile, or this would never get here.
    tracker.alloc(device, 42, 1)
    thread.join()
    assert seen == [42]


def test_a_follower_ends_with_its_process(tracker, device) -> None:
    follower = tt_shm.follow(position=0)
    tracker.alloc(device, 1, 1)
    tracker.close()
    assert [one.kind for one in follower] == ["ALLOC"]


def test_without_reports_there_is_nothing_to_follow() -> None:
    with pytest.raises(tt_shm.Error, match="reports nothing"):
        tt_shm.follow()


def test_what_was_overwritten_is_counted() -> None:
    with tt_shm.Tracker(ring_slots=2048) as tracker:
        device = tracker.register_device(1)
        tracker.alloc_many(device, [(number, 1) for number in range(5000)])
        follower = tt_shm.follow(position=0, timeout=0)
        events = list(follower)
        assert follower.missed + len(events) == 5000 and follower.missed > 0


def test_numpy_is_not_needed_otherwise() -> None:
    code = "import sys; sys.modules['numpy'] = None; import tt_shm, tt_shm.arrays; tt_shm.memory_allocated()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_events_and_live_lists_are_structured_arrays(tracker, device) -> None:
    numpy = pytest.importorskip("numpy")
    from tt_shm import arrays

    tracker.alloc(device, 1, 5000, bytes_per_bank=1024, name="weights")
    tracker.alloc(device, 2, 300, "l1", name="scores")
    tracker.free(device, 1)
    events = arrays.events()
    assert events.array.dtype.itemsize == 64 and events.array.flags.writeable
    assert events.array["id"].tolist() == [1, 2, 1] and events.array["size"].tolist() == [12288, 300, 12288]
    assert events.exact and events.missed == 0 and sorted(events.names.values()) == ["scores", "weights"]
    assert (numpy.diff(events.time_ns.astype("i8")) >= 0).all()
    columns = events.columns()
    assert columns["kind"] == ["ALLOC", "ALLOC", "FREE"] and columns["memory"] == ["dram", "l1", "dram"]
    assert columns["device"] == [3, 3, 3] and columns["name"][1] == "scores"
    live = arrays.live(strict=True)
    assert not live.array.flags.writeable
    listed = live.segment.live()
    first, second = (numpy.frombuffer(listed, dtype=numpy.dtype(arrays.FIELDS)) for _ in range(2))
    assert numpy.shares_memory(first, second), "one list, and no copy of it"
    del listed
    assert first["id"].tolist() == [2], "arrays keep what they are of"
    assert live.array["id"].tolist() == [2] and live.columns()["name"] == ["scores"]
    assert len(arrays.events(position=int(events.array["position"][-1]))) == 0
    assert len(arrays.events(limit=2)) == 2


def test_bytes_go_on_where_the_iterator_stopped(tracker, device) -> None:
    tracker.alloc_many(device, [(number, 1) for number in range(10)])
    follower = tt_shm.follow(position=0, timeout=0)
    next(follower)
    rest = follower.read(5) + follower.read(100)
    assert len(rest) == 9 * 64 and follower.position == 10


def test_pandas(tracker, device) -> None:
    pandas = pytest.importorskip("pandas")
    from tt_shm import arrays

    tracker.alloc_many(device, [(1, 10), (2, 20)], name="tokens")
    tracker.free(device, 1)
    frame = arrays.events().to_pandas()
    assert frame[frame.kind == "ALLOC"]["size"].sum() == 30
    assert len(pandas.DataFrame(arrays.events().array)) == 3
    assert arrays.live().to_pandas().groupby("name")["size"].sum().to_dict() == {"tokens": 20}


def test_polars(tracker, device) -> None:
    polars = pytest.importorskip("polars")
    from tt_shm import arrays

    tracker.alloc_many(device, [(1, 10), (2, 20)], name="tokens")
    frame = arrays.live().to_polars()
    assert frame["size"].sum() == 30 and frame["name"].to_list() == ["tokens", "tokens"]
    assert polars.from_numpy(arrays.live().array)["size"].to_list() == [10, 20]
