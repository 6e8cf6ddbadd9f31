"""The real ttnn, in tt-metal's mock mode: `.ci/python` makes the environment. Skipped where there is none."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ttnn") is None or "TT_METAL_MOCK_MACHINES" not in os.environ,
    reason="needs ttnn in mock mode: .ci/python",
)

JOBS = Path(__file__).with_name("ttnn_jobs.py")
WHEN = ("before-import", "before-open", "late")


def start(arguments: list[str | Path], machine: str) -> subprocess.CompletedProcess[str]:
    description = Path(os.environ["TT_METAL_MOCK_MACHINES"]) / f"{machine}.yaml"
    environment = {**os.environ, "MACHINE": machine, "TT_METAL_MOCK_CLUSTER_DESC_PATH": str(description)}
    # tt-metal writes into the folder it is started in.
    folder = os.environ["TT_METAL_MOCK_FOLDER"]
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=folder, capture_output=True, text=True, timeout=300
    )


def run(job: str, when: str = "before-import", machine: str = "n150") -> None:
    done = start([JOBS, job, when], machine)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    print(done.stdout)
    found = re.search(r"(\d+) comparisons, 0 different", done.stdout)
    assert found is not None and int(found.group(1)) > 0


@pytest.mark.parametrize("when", WHEN)
def test_figures_after_every_step_are_the_allocators(when: str) -> None:
    run("walk", when)


def test_figures_of_each_chip_of_a_mesh(when: str = "before-open") -> None:
    run("walk", when, "t3k")


@pytest.mark.parametrize("when", WHEN)
def test_peaks_while_threads_allocate_and_free(when: str) -> None:
    run("threads", when)


@pytest.mark.parametrize("when", WHEN)
def test_peaks_of_steps_by_operation(when: str) -> None:
    run("steps", when)


def test_a_step_around_everything() -> None:
    run("within", "not yet")


def test_devices_that_are_closed_and_opened_again() -> None:
    run("reopen")


def test_a_forked_child() -> None:
    run("child")


def test_a_script_without_a_word_about_it() -> None:
    script = Path(os.environ["TT_METAL_MOCK_FOLDER"]) / "tt_shm_plain.py"
    script.write_text(
        "import ttnn\n"
        "mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 1))\n"
        "one = ttnn.allocate_tensor_on_device(ttnn.Shape([1, 1, 512, 512]), ttnn.bfloat16, ttnn.TILE_LAYOUT, mesh,\n"
        "                                     ttnn.DRAM_MEMORY_CONFIG)\n"
        "del one\n"
        "ttnn.close_mesh_device(mesh)\n"
    )
    done = start(["-m", "tt_shm", "--summary", script], "n150")
    assert done.returncode == 0, done.stderr
    assert re.search(r"dram +0 B +528\.0 KiB +528\.0 KiB +528\.0 KiB", done.stderr), done.stderr


def test_the_plugin_sees_ttnn(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    description = Path(os.environ["TT_METAL_MOCK_MACHINES"]) / "n150.yaml"
    monkeypatch.setenv("TT_METAL_MOCK_CLUSTER_DESC_PATH", str(description))
    pytester.makepyfile(
        """
import pytest, ttnn

@pytest.fixture(scope="module")
def mesh():
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 1))
    yield mesh
    ttnn.close_mesh_device(mesh)

def tensor(mesh):
    return ttnn.allocate_tensor_on_device(
        ttnn.Shape([1, 1, 512, 512]), ttnn.bfloat16, ttnn.TILE_LAYOUT, mesh, ttnn.DRAM_MEMORY_CONFIG)

@pytest.mark.limit_device_memory("1 MiB")
@pytest.mark.limit_device_leaks("0 B")
def test_within(mesh):
    tensor(mesh)

@pytest.mark.limit_device_memory("100 KiB")
def test_over(mesh):
    tensor(mesh)

kept = []

@pytest.mark.limit_device_leaks("0 B")
def test_leak(mesh):
    kept.append(tensor(mesh))

def test_end(mesh):
    kept.clear()
"""
    )
    result = pytester.runpytest_subprocess("--tt-memory")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*test_over took 528.0 KiB of dram*", "*test_leak left 528.0 KiB of dram behind*"])
