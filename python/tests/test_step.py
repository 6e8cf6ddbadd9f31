"""Peaks of a step, and what they were made of."""

from __future__ import annotations

import os
import threading

import pytest

import tt_shm


def test_a_step_has_its_own_peak_and_what_it_was_made_of(tracker, device) -> None:
    tracker.alloc(device, 1, 1000, name="weights")
    tracker.alloc(device, 2, 9000, name="gone before")
    tracker.free(device, 2)
    with tt_shm.step("prefill") as step:
        assert step.peak is None and not step.exact
        tracker.alloc(device, 3, 300, name="activations")
        tracker.alloc(device, 4, 200, name="activations")
        tracker.free(device, 3)
        tracker.alloc(device, 5, 50, "l1", name="scores")
    assert (step.peak, step.exact, step.missed) == (1500, True, 0)
    assert step.composition == {"weights": 1000, "activations": 500}
    assert (step.added, step.left_over) == (500, 200)
    l1 = step.of(memory="l1")
    assert l1 is not None and (l1.peak, l1.begin, l1.end, l1.exact) == (50, 0, 50, True)
    assert l1.parts == (tt_shm.Part("scores", "l1", 50, 1),)
    assert step.of(3) == step.of(0x5EED) == step.of(device) is not None
    assert step.of(99) is None
    assert tt_shm.max_memory_allocated() == 10000, "the peaks of the process are not touched"


def test_steps_nest_and_repeat(tracker, device) -> None:
    with tt_shm.step("outer", strict=True) as outer:
        peaks = []
        for size in (100, 300, 200):
            with tt_shm.step("inner", strict=True) as inner:
                tracker.alloc(device, 1, size)
                tracker.free(device, 1)
            peaks.append(inner.peak)
    assert peaks == [100, 300, 200] and outer.peak == 300


def test_a_step_without_reports_is_unknown() -> None:
    with tt_shm.step("nothing") as step:
        pass
    assert (step.peak, step.exact, step.composition, step.left_over) == (None, False, None, None)
    assert "nothing is known" in repr(step) and "nothing is known" in step._repr_html_()
    with pytest.raises(tt_shm.InexactError):
        with tt_shm.step("nothing", strict=True):
            pass


def test_an_error_in_a_step_is_not_hidden_by_its_end() -> None:
    with pytest.raises(ZeroDivisionError):
        with tt_shm.step("failing", strict=True):
            raise ZeroDivisionError


def test_a_process_that_begins_to_report_within_a_step_is_seen_whole() -> None:
    with tt_shm.step("start") as step:
        tracker = tt_shm.Tracker()
        device = tracker.register_device(7)
        tracker.alloc(device, 1, 700)
        tracker.free(device, 1)
        tracker.alloc(device, 2, 100)
    level = step.of()
    assert level is not None and (level.peak, level.exact, level.begin, level.end) == (700, True, 0, 100)
    tracker.close()


def test_markers_are_around_a_step(tracker, device) -> None:
    with tt_shm.step("decode"):
        tracker.alloc(device, 1, 1)
    events = [(one.kind, one.phase, one.name) for one in tt_shm.follow(position=0, timeout=0)]
    assert events == [("MARKER", "begin", "decode"), ("ALLOC", None, None), ("MARKER", "end", "decode")]


def test_threads_that_allocate_and_free_are_all_in_it(tracker, device) -> None:
    def work(first: int) -> None:
        for turn in range(2000):
            tracker.alloc(device, first + turn, 10, name="tokens")
        for turn in range(2000):
            tracker.free(device, first + turn)

    threads = [threading.Thread(target=work, args=(10_000 * number,)) for number in range(3)]
    with tt_shm.step("busy") as step:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert step.left_over == 0
    assert step.peak == tt_shm.max_memory_allocated(strict=True)
    assert step.events + step.missed == 12_002, "all of them, and both markers"
    if step.missed == 0:
        assert step.exact and step.composition == {"tokens": step.peak}


def test_a_ring_that_is_too_small_makes_it_a_bound_and_never_wrong() -> None:
    with tt_shm.Tracker(ring_slots=2048) as tracker:
        device = tracker.register_device(7)
        # A peak of before, which says nothing about that of the step.
        tracker.alloc(device, 1 << 40, 90_000)
        tracker.free(device, 1 << 40)
        with tt_shm.step("flood") as step:
            tracker.alloc_many(device, [(number, 1) for number in range(40_000)])
            tracker.free_many(device, range(40_000))
        level = step.of()
        assert level is not None and level.peak <= 40_000 and level.end == 0
        assert level.possible is None or level.possible >= 40_000
        assert step.missed + step.events >= 80_000


def test_another_process_can_be_measured(tracker, device, in_child) -> None:
    parent = os.getpid()
    (begun, begin), (ended, end) = os.pipe(), os.pipe()

    def child() -> None:
        with tt_shm.step("theirs", pid=parent) as step:
            os.write(begin, b"x")
            os.read(ended, 1)
        assert (step.peak, step.exact) == (500, True), step

    def allocate() -> None:
        os.read(begun, 1)
        tracker.alloc(device, 1, 500)
        tracker.free(device, 1)
        os.write(end, b"x")

    thread = threading.Thread(target=allocate)
    thread.start()
    in_child(child)
    thread.join()
