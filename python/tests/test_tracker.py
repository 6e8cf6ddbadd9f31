"""A tracker for hosts in Python."""

from __future__ import annotations

import threading

import pytest

import tt_shm


def test_misuse_raises_with_a_stable_number(tracker, device) -> None:
    tracker.alloc(device, 1, 100)
    for call, code in (
        (lambda: tracker.free(device, 9), 1),
        (lambda: tracker.alloc(device, 1, 100), 2),
        (lambda: tracker.alloc(device, 2, 1 << 60), 8),
        (lambda: tracker.dispatch(device, 77), 9),
        (lambda: tracker.reset_peaks_of(77), 4),
    ):
        with pytest.raises(tt_shm.RecordError) as raised:
            call()
        assert (raised.value.code, raised.value.errno) == (code, None)
        assert isinstance(raised.value, tt_shm.Error) and isinstance(raised.value, RuntimeError)
    assert tt_shm.memory_allocated() == 100, "no total is wrong"
    for call in (
        lambda: tracker.alloc(device, 2, 1, "sram"),
        lambda: tracker.marker("middle"),
        lambda: tracker.register_device(1, arch="z80"),
        lambda: tracker.kernel_load(device, 1, 1, 1, "game"),
    ):
        with pytest.raises(ValueError):
            call()


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(tt_shm.OpenError) as raised:
        tt_shm.Tracker(ring_slots=3)
    assert raised.value.code == 33
    with pytest.raises(tt_shm.OpenError) as raised:
        tt_shm.Tracker(namespace="a/b")
    assert raised.value.code == 32


def test_a_mesh_is_reported_on_each_of_its_devices_or_on_none(tracker, device) -> None:
    mesh = [device, tracker.register_device(2, logical_id=1)]
    tracker.alloc(mesh, 1, 100)
    assert [tt_shm.memory_allocated(one) for one in mesh] == [100, 100]
    tracker.alloc(device, 2, 5)
    with pytest.raises(tt_shm.RecordError):
        tracker.free(mesh, 2)
    assert [tt_shm.memory_allocated(one) for one in mesh] == [105, 100]


def test_a_batch_says_how_far_it_got(tracker, device) -> None:
    tracker.alloc_many(device, [(1, 10), (2, 20)], name="tokens")
    assert {one.name for one in tt_shm.live_allocations()} == {"tokens"}
    with pytest.raises(tt_shm.RecordError) as raised:
        tracker.alloc_many(device, [(3, 30), (2, 20), (4, 40)])
    assert (raised.value.done, raised.value.code) == (1, 2)
    tracker.free_many(device, [1, 2, 3])
    assert tt_shm.memory_allocated() == 0


def test_all_threads_share_a_tracker(tracker, device) -> None:
    def work(first: int) -> None:
        for number in range(first, first + 500):
            tracker.alloc(device, number, 10)
        for number in range(first, first + 250):
            tracker.free(device, number, 10)

    threads = [threading.Thread(target=work, args=(1000 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tt_shm.memory_allocated(strict=True) == 4 * 250 * 10


def test_closed_and_disabled_trackers_do_nothing(tracker, device) -> None:
    tracker.close()
    tracker.alloc(device, 1, 1)
    assert tracker.segment_path is None and tt_shm.memory_allocated() is None
    off = tt_shm.Tracker(enabled=False)
    off.alloc(off.register_device(1), 1, 1)
    assert not off.is_enabled and off.segment_path is None


def test_the_tracker_of_the_process_is_on_only_if_the_environment_says_so(monkeypatch) -> None:
    monkeypatch.delenv("TT_ALLOC_TRACKING_ENABLED", raising=False)
    assert not tt_shm.Tracker.for_process().is_enabled
