"""Each test has a namespace of its own in /dev/shm, and leaves nothing there."""

from __future__ import annotations

import itertools
import os
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tt_shm

pytest_plugins = ["pytester"]

_counter = itertools.count()


@pytest.fixture(autouse=True)
def namespace(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"py-{os.getpid()}-{next(_counter)}"
    monkeypatch.setenv("TT_SHM_NAMESPACE", name)
    yield name
    left = list(Path("/dev/shm").glob(f"tt-shm.*.{name}.*"))
    for file in left:
        file.unlink(missing_ok=True)
    assert not left, "segments that nobody removed"


@pytest.fixture
def tracker() -> Iterator[tt_shm.Tracker]:
    with tt_shm.Tracker() as tracker:
        yield tracker


@pytest.fixture
def device(tracker: tt_shm.Tracker) -> tt_shm.TrackerDevice:
    """12 banks of DRAM with 1 GiB each, 64 banks of L1 with 1 MiB."""
    return tracker.register_device(
        0x5EED, logical_id=3, arch="wormhole_b0", dram_pool=(12, 1 << 30, 32), l1_pool=(64, 1 << 20, 16)
    )


@pytest.fixture
def in_child() -> Callable[[Callable[[], None]], None]:
    """Runs something in a forked child, in which it must not raise."""

    def run(work: Callable[[], None]) -> None:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                work()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    return run
