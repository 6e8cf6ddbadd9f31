"""The tap, as far as it can be shown without ttnn (with it: test_ttnn.py)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tt_shm
from tt_shm import _reading, _sources, _tap


def run(code: str, **environment: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_library_is_in_the_package() -> None:
    assert _tap.path().is_file()


def test_without_tt_metal_it_is_loaded_and_reports_nothing() -> None:
    code = """
import tt_shm
assert tt_shm.track() is False
assert tt_shm.track(children=True) is False
assert tt_shm.memory_allocated() is None
with tt_shm.step("nothing"): pass
tt_shm.reset_peak_memory_stats()
assert tt_shm.untrack() is False
print(open("/proc/self/maps").read().count("libtt_shm_tap") > 0)
"""
    assert run(code) == "True"


def test_one_that_was_preloaded_is_not_loaded_again(tmp_path: Path) -> None:
    other = tmp_path / "libtt_shm_tap-0123456789abcdef.so"
    other.write_bytes(_tap.path().read_bytes())
    code = """
import tt_shm
tt_shm.track()
print(len({line.split()[-1] for line in open("/proc/self/maps") if "libtt_shm_tap" in line}))
"""
    assert run(code, LD_PRELOAD=str(other)) == "1"


def test_nothing_is_reported_twice(tmp_path: Path) -> None:
    fake = tmp_path / "libtt_shm_tap.so"
    text = "int ended; int tt_shm_tap_detach(void) { return ++ended, 1; } int tt_shm_tap_install(void) { return -1; }"
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", fake], input=text, text=True, check=True)
    code = """
import ctypes, os, tt_shm
ended = ctypes.c_int.in_dll(ctypes.CDLL(os.environ["FAKE"]), "ended")
tt_shm.Tracker(enabled=False)
tt_shm.Tracker(enabled=None)
beside = tt_shm.Tracker(beside_tap=True)
assert ended.value == 0
assert tt_shm.track() is False
tracker = tt_shm.Tracker()
assert ended.value == 1
try:
    tt_shm.track()
except tt_shm.Error as error:
    assert "beside_tap" in str(error)
else:
    raise AssertionError("it would have been reported twice")
tracker.close()
assert tt_shm.track() is False and ended.value == 1
beside.close()
print("ok")
"""
    assert run(code, FAKE=str(fake)) == "ok"


def test_preload_keeps_what_was_there() -> None:
    environment = {"LD_PRELOAD": "libother.so"}
    _tap.preload(environment)
    _tap.preload(environment)
    assert environment["LD_PRELOAD"] == f"{_tap.path()}:libother.so"


SCRIPT = """
import subprocess, sys
import beside
assert __name__ == "__main__"
loaded = "print('libtt_shm_tap' in open('/proc/self/maps').read())"
child = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)
print(sys.argv[1:], "libtt_shm_tap" in open("/proc/self/maps").read(), child.stdout.strip())
sys.exit(3)
"""


def test_python_m_tt_shm_runs_a_script_and_its_children(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("")
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}

    def start(*arguments: str | Path, **options: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tt_shm", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, **options)

    done = start(script, "-x", "y")
    assert (done.returncode, done.stdout.strip()) == (3, "['-x', 'y'] True True"), done.stderr
    module = start("-m", "script", "z", cwd=tmp_path)
    assert (module.returncode, module.stdout.strip()) == (3, "['z'] True True"), module.stderr
    assert start().returncode == 2 and "usage" in start().stderr
    assert "LD_PRELOAD" in start("--help").stdout
    assert "nothing is known" in start("--summary", script).stderr


def test_peaks_of_a_tracker_that_is_not_ours_are_not_reset(tracker, device) -> None:
    _sources._trackers.discard(tracker)
    ((segment,), _) = _reading.segments()
    assert segment.source == "ring"
    with pytest.raises(tt_shm.Error, match="not opened in Python") as raised:
        tt_shm.reset_peak_memory_stats()
    assert (raised.value.code, raised.value.errno) == (0, None)
