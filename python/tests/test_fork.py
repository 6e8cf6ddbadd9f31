"""Forked and spawned children."""

from __future__ import annotations

import multiprocessing
import os
import threading

import pytest

import tt_shm


def test_a_forked_child_has_figures_of_its_own(tracker, device, in_child) -> None:
    tracker.alloc(device, 1, 1000)
    assert tt_shm.memory_allocated() == 1000

    def child() -> None:
        assert tt_shm.memory_allocated() is None, "it holds nothing, and reports nothing yet"
        tracker.alloc(device, 1, 50, name="mine")
        assert tt_shm.memory_allocated(device, strict=True) == 50
        assert tt_shm.memory_allocated(pid=os.getppid()) == 1000
        with tt_shm.step("in the child") as step:
            tracker.alloc(device, 2, 70)
            tracker.free(device, 2)
        assert (step.peak, step.exact) == (120, True)
        tt_shm.reset_peak_memory_stats()
        assert tt_shm.max_memory_allocated() == 50
        tracker.close()

    in_child(child)
    assert tt_shm.memory_allocated(strict=True) == 1000


def test_a_fork_while_others_read_and_write_leaves_nobody_waiting(tracker, device, in_child) -> None:
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            tracker.alloc(device, 1, 10)
            with tt_shm.step("busy"):
                tt_shm.memory_stats()
                tt_shm.live_allocations()
            tracker.free(device, 1)

    def child() -> None:
        tracker.alloc(device, 9, 30)
        assert tt_shm.memory_allocated() == 30
        with tt_shm.step("child") as step:
            pass
        assert step.peak == 30
        tracker.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            in_child(child)
    finally:
        is_over.set()
        thread.join()


def test_a_step_around_a_fork_ends_in_both(tracker, device, in_child) -> None:
    with tt_shm.step("around") as step:
        tracker.alloc(device, 1, 10)

        def child() -> None:
            step.__exit__(None, None, None)
            assert step.peak is None, "it was measured in the parent"
            tracker.close()

        in_child(child)
    assert (step.peak, step.exact) == (10, True)


def _work(size: int) -> int | None:
    with tt_shm.Tracker() as tracker:
        tracker.alloc(tracker.register_device(1, logical_id=0), 1, size)
        return tt_shm.memory_allocated(0, strict=True)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing(method: str) -> None:
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_work, [10, 20, 30]) == [10, 20, 30]
