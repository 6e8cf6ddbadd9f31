"""Figures in the manner of torch.cuda."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import sys
import time

import pytest

import tt_shm

CHIP = 0x5EED


def test_without_reports_everything_is_unknown_and_not_zero() -> None:
    assert tt_shm.memory_allocated() is None
    assert tt_shm.max_memory_allocated(0) is None
    assert tt_shm.memory_stats() == {}
    assert tt_shm.memory_stats_as_nested_dict() == {}
    assert tt_shm.mem_get_info() == (None, None) and not tt_shm.mem_get_info().exact
    assert tt_shm.live_allocations() == []
    assert tt_shm.memory_snapshot() == []
    assert tt_shm.devices() == []
    assert "tt_shm.track()" in tt_shm.memory_summary()
    with pytest.raises(tt_shm.InexactError, match="tt_shm.track()"):
        tt_shm.memory_allocated(strict=True)


def test_used_is_occupied_and_requested_is_beside_it(tracker, device) -> None:
    tracker.alloc(device, 1, 5000, bytes_per_bank=1024, name="weights")
    assert tt_shm.memory_allocated(strict=True) == 12 * 1024
    stats = tt_shm.memory_stats(strict=True)
    assert stats["allocated_bytes.all.current"] == 12 * 1024
    assert stats["requested_bytes.all.current"] == 5000
    assert stats["basis"] == "occupied"
    assert stats.exact and stats.total == 12 << 30
    tracker.alloc(device, 2, 100)
    assert tt_shm.memory_stats()["basis"] == "requested"


def test_a_device_is_a_number_a_chip_id_or_a_handle(tracker, device) -> None:
    other = tracker.register_device(0xBEEF, logical_id=4)
    tracker.alloc(device, 1, 1000)
    tracker.alloc(other, 1, 3000)

    class Mesh:
        def get_device_ids(self) -> list[int]:
            return [3, 4]

    class Old:
        def id(self) -> int:
            return 3

    (handle,) = [one for one in tt_shm.devices() if one.logical_id == 3]
    for name in (3, CHIP, device, handle, Old(), [3], [device]):
        assert tt_shm.memory_allocated(name) == 1000, name
    # Of several, the chip that holds the most.
    for name in (None, Mesh(), [device, other], [3, 0xBEEF]):
        assert tt_shm.memory_allocated(name) == 3000, name
    assert tt_shm.memory_allocated(99) is None
    with pytest.raises(tt_shm.InexactError, match="99"):
        tt_shm.memory_allocated(99, strict=True)
    with pytest.raises(TypeError):
        tt_shm.memory_allocated("3")
    with pytest.raises(ValueError):
        tt_shm.memory_allocated(3, memory="sram")


def test_peaks_and_their_reset(tracker, device) -> None:
    tracker.alloc(device, 1, 1000)
    tracker.alloc(device, 2, 500, "l1")
    tracker.free(device, 1)
    tracker.free(device, 2)
    assert tt_shm.max_memory_allocated(strict=True) == 1000
    assert tt_shm.max_memory_allocated(memory="l1", strict=True) == 500
    assert (tt_shm.memory_reserved(), tt_shm.max_memory_reserved()) == (0, 1000)
    tracker.alloc(device, 3, 10)
    tt_shm.reset_peak_memory_stats(device)
    assert tt_shm.max_memory_allocated() == 10
    assert tt_shm.max_memory_allocated(memory="l1") == 0


def test_a_reset_is_of_one_device_only(tracker, device) -> None:
    other = tracker.register_device(0xBEEF, logical_id=4)
    tracker.alloc([device, other], 1, 1000)
    tracker.free([device, other], 1)
    tt_shm.reset_peak_memory_stats(3)
    assert (tt_shm.max_memory_allocated(3), tt_shm.max_memory_allocated(4)) == (0, 1000)
    tt_shm.reset_peak_memory_stats()
    assert tt_shm.max_memory_allocated() == 0


def test_peaks_of_two_allocators_of_a_chip_are_a_range(tracker, device) -> None:
    second = tracker.register_device(CHIP, allocator=1, logical_id=3)
    tracker.alloc(device, 1, 1000)
    assert tt_shm.max_memory_allocated(strict=True) == 1000, "the other one has held nothing yet"
    tracker.free(device, 1)
    tracker.alloc(second, 1, 700)
    assert tt_shm.memory_allocated(strict=True) == 700
    assert tt_shm.max_memory_allocated() == 1000, "what is certain"
    with pytest.raises(tt_shm.InexactError, match="1000 and 1700"):
        tt_shm.max_memory_allocated(strict=True)
    tt_shm.reset_peak_memory_stats()
    assert tt_shm.max_memory_allocated(strict=True) == 700


def test_what_a_process_cannot_report_makes_it_inexact(tracker, device) -> None:
    tracker.alloc(device, 1, 1000)
    tracker.partial()
    assert tt_shm.memory_allocated() == 1000
    assert not tt_shm.memory_stats().exact
    with pytest.raises(tt_shm.InexactError, match="may hold more"):
        tt_shm.memory_allocated(strict=True)
    tracker.complete()
    assert tt_shm.memory_allocated(strict=True) == 1000


def test_statistics_by_class_add_up(tracker, device) -> None:
    tracker.alloc(device, 1, 1000)
    tracker.alloc(device, 2, 200, "trace")
    tracker.free(device, 1)
    nested = tt_shm.memory_stats_as_nested_dict()
    everything, dram, trace = (nested["allocated_bytes"][name] for name in ("all", "dram", "trace"))
    assert everything == {"current": 200, "peak": 1200, "allocated": 1200, "freed": 1000}
    assert dram == {"current": 0, "peak": 1000, "allocated": 1000, "freed": 1000}
    assert trace == {"current": 200, "peak": 200, "allocated": 200, "freed": 0}
    assert nested["allocation"]["all"] == {"current": 1, "peak": None, "allocated": 2, "freed": 1}
    assert nested["requested_bytes"]["all"]["peak"] is None


def test_circular_buffers_count_while_resident(tracker, device) -> None:
    tracker.alloc(device, 1, 1000, "l1")
    tracker.cb_alloc(device, 7, 1, 100, 8)
    assert tt_shm.memory_allocated(memory="l1") == 1000
    tracker.kernel_load(device, 1, 64, 8, program=7)
    tracker.dispatch(device, 7)
    assert tt_shm.memory_allocated(memory="l1") == 1800
    stats = tt_shm.memory_stats(memory="l1")
    assert stats["allocated_bytes.cb.current"] == 800
    assert stats["allocated_bytes.cb.peak"] is None
    tracker.program_end(device, 7)
    assert tt_shm.memory_allocated(memory="l1") == 1000


def test_accumulated_figures_begin_anew_for_this_process_only(tracker, device) -> None:
    tracker.alloc(device, 1, 1000)
    tt_shm.reset_accumulated_memory_stats()
    tracker.free(device, 1)
    tracker.alloc(device, 2, 50)
    stats = tt_shm.memory_stats()
    assert (stats["allocated_bytes.all.allocated"], stats["allocated_bytes.all.freed"]) == (50, 1000)
    assert (stats["allocation.all.allocated"], stats["allocation.all.freed"]) == (1, 1)
    assert tracker.counters(device).classes(False)["dram"][3] == 1050, "nothing is changed for others"


def test_free_memory_is_that_of_all_processes(tracker, device) -> None:
    tracker.alloc(device, 1, 1000)
    script = f"""
import tt_shm
tracker = tt_shm.Tracker()
device = tracker.register_device({CHIP}, logical_id=0)
tracker.alloc(device, 1, 500)
print("ready", flush=True)
input()
"""
    total = 12 << 30
    with subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        assert tt_shm.mem_get_info(device, strict=True) == (total - 1500, total)
        assert tt_shm.memory_allocated(CHIP, pid=child.pid, strict=True) == 500
        assert tt_shm.memory_allocated(0, pid=child.pid) == 500, "numbers are those of the process that is asked for"
        assert tt_shm.max_memory_allocated(pid=child.pid) == 500
        assert [one.size for one in tt_shm.live_allocations(pid=child.pid)] == [500]
        child.communicate("\n")
    assert tt_shm.mem_get_info(device) == (total - 1000, total)
    assert tt_shm.memory_allocated(pid=child.pid) is None
    assert tt_shm.mem_get_info(device, memory="l1") == (64 << 20, 64 << 20)


def region(chip: int, pid: int) -> bytes:
    """What an unmodified tt-metal publishes of a chip on which one process has 4096 bytes of DRAM (tests/src/region.rs)."""
    now = time.time_ns()
    image = bytearray(8576)

    def put(place: int, form: str, *values: int) -> None:
        struct.pack_into(form, image, place, *values)

    put(0, "<IIQI", 3, 1, now, 1)
    put(32, "<Q", chip)
    put(48, "<Q", 4096)
    for slot in range(16):
        put(88 + 48 * slot, "<I", 2**32 - 1)
    put(88, "<I", 0)
    put(96, "<Q", 4096)
    put(856, "<I", pid)
    put(864, "<Q", 4096)
    put(904, "<Q", now)
    image[912:918] = b"python"
    return bytes(image)


def test_free_memory_is_not_exact_where_a_silent_process_holds_the_chip(tracker, device, monkeypatch, tmp_path) -> None:
    from tt_shm import stats

    (tmp_path / "dev/shm").mkdir(parents=True)
    (tmp_path / "proc").symlink_to("/proc")
    monkeypatch.setattr(stats, "_root", tmp_path)
    tracker.alloc(device, 1, 1000)
    total = 12 << 30
    info = tt_shm.mem_get_info(device, strict=True)
    assert (info, info.exact, info.doubts) == ((total - 1000, total), True, ())
    file = tmp_path / f"dev/shm/tt_device_{CHIP}_memory"
    file.write_bytes(region(CHIP, os.getpid()))
    # A process that uses a region has it mapped.
    with open(file, "r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        assert tt_shm.mem_get_info(device, strict=True).exact, "this process reports by itself"
        script = f"import mmap; file = open({os.fspath(file)!r}, 'r+b'); mapped = mmap.mmap(file.fileno(), 0); "
        script += "print('ready', flush=True); input()"
        with subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1, text=True) as silent:
            assert silent.stdout is not None and silent.stdout.readline() == "ready\n"
            mapped[:] = region(CHIP, silent.pid)
            info = tt_shm.mem_get_info(device)
            assert (info, info.exact) == ((total - 1000, total), False)
            assert "does not report" in info.doubts[0]
            with pytest.raises(tt_shm.InexactError, match="does not report"):
                tt_shm.mem_get_info(device, strict=True)
            silent.communicate("\n")
    assert tt_shm.mem_get_info(device, strict=True).exact, "it has ended"


def test_what_is_live(tracker, device) -> None:
    tracker.alloc(device, 1, 5000, bytes_per_bank=1024, name="weights", site="model.py:7", address=0x40)
    tracker.alloc(device, 2, 300, "l1", name=b"scores", cores=8)
    tracker.alloc(device, 3, 1)
    tracker.free(device, 3)
    weights, scores = tt_shm.live_allocations(strict=True)
    assert (weights.kind, weights.size, weights.requested, weights.address) == ("dram", 12288, 5000, 0x40)
    assert (weights.name, weights.site, weights.logical_id, weights.chip_id) == ("weights", "model.py:7", 3, CHIP)
    assert (scores.kind, scores.name, scores.cores, scores.address) == ("l1", "scores", 8, None)
    assert [one.id for one in tt_shm.live_allocations(memory="l1")] == [2]
    assert tt_shm.live_allocations(99) == []
    dram, l1 = tt_shm.memory_snapshot()
    assert (dram["device"], dram["segment_type"]) == (3, "dram")
    assert (dram["allocated_size"], dram["requested_size"]) == (12288, 5000)
    assert dram["blocks"][0]["name"] == "weights" and l1["blocks"][0]["size"] == 300


def test_the_summary_names_what_there_is(tracker, device) -> None:
    tracker.alloc(device, 1, 3 << 20)
    tracker.alloc_failed(device, 1 << 40)
    summary = tt_shm.memory_summary()
    assert "device 3" in summary and "3.0 MiB" in summary and "12.0 GiB" in summary
    assert "failed allocations: 1" in summary
    assert len(tt_shm.memory_summary(abbreviated=True)) < len(summary)
    assert tt_shm.memory_stats()["num_ooms"] == 1


def test_a_segment_that_comes_or_goes_is_noticed_at_once() -> None:
    for turn in range(20):
        assert tt_shm.memory_allocated() is None
        with tt_shm.Tracker() as tracker:
            tracker.alloc(tracker.register_device(1), 1, turn)
            assert tt_shm.memory_allocated() == turn


def test_units() -> None:
    assert tt_shm.parse_bytes("1.5 GiB") == 3 << 29
    assert tt_shm.parse_bytes("20MB") == 20_000_000
    assert tt_shm.parse_bytes("0 B") == tt_shm.parse_bytes(0) == 0
    for text in ("", "GiB", "1.5 XB", "-1 B"):
        with pytest.raises(ValueError):
            tt_shm.parse_bytes(text)
    shown = [tt_shm.format_bytes(count) for count in (None, 0, 1536, -(3 << 20), 5 << 40)]
    assert shown == ["-", "0 B", "1.5 KiB", "-3.0 MiB", "5.0 TiB"]


def test_notebooks_draw(tracker, device) -> None:
    tracker.alloc(device, 1, 3 << 30)
    picture = tt_shm.memory_stats()._repr_html_()
    assert "<svg" in picture and "3.0 GiB" in picture and picture.count("<rect") >= 2
    assert "nothing is known" in tt_shm.memory_stats(99)._repr_html_()
    with tt_shm.step("<step>") as step:
        tracker.alloc(device, 2, 1 << 20, name="<script>")
    picture = step._repr_html_()
    assert "<svg" in picture and "&lt;script&gt;" in picture and "<script>" not in picture
