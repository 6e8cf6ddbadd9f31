"""Device memory of tests: limits, leaks, and a table, in the style of pytest-memray.

    @pytest.mark.limit_device_memory("1.5 GiB")   # what the test itself adds, at its peak, on any chip
    @pytest.mark.limit_device_leaks("0 B")        # what it leaves behind

Both take `device=`, and `memory="l1"` instead of DRAM; the first `total=True`, to count what was there before the test as
well. `--tt-memory` shows a table of all tests. Nothing is measured, and nothing is loaded, unless one of these asks for it.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Generator
from typing import Any, TypedDict

import pytest

import tt_shm
from tt_shm import _tap
from tt_shm._reading import Reading, is_l1

_PEAKS = "tt_shm/peaks"
_SHOWN_PARTS = 8
_MEMORIES: tuple[tt_shm.Memory, tt_shm.Memory] = ("dram", "l1")


class Row(TypedDict):
    """What is kept of a test: it may come from another process."""

    test: str
    peak: int | None
    added: int | None
    left_over: int | None
    l1_peak: int | None
    exact: bool


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tt-memory", "device memory of tests (tt_shm)")
    group.addoption("--tt-memory", action="store_true", help="show the device memory of each test")
    group.addoption(
        "--tt-memory-most-allocations",
        type=int,
        metavar="N",
        default=None,
        help="show only the N tests with the largest peaks (implies --tt-memory)",
    )
    group.addoption(
        "--tt-memory-fail-on-increase",
        action="store_true",
        help="fail tests that need more device memory than in their last successful run, of which .pytest_cache knows",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        'limit_device_memory(limit, *, device=None, memory="dram", total=False): fail the test if it takes more device '
        'memory than this, e.g. "1.5 GiB", on any chip',
    )
    config.addinivalue_line(
        "markers",
        'limit_device_leaks(limit, *, device=None, memory="dram"): fail the test if it leaves more than this behind',
    )
    config.pluginmanager.register(_Manager(config), "tt_shm_manager")


class _Manager:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._most: int | None = config.getoption("tt_memory_most_allocations")
        self._shows = bool(config.getoption("tt_memory")) or self._most is not None
        self._watches_increase = bool(config.getoption("tt_memory_fail_on_increase"))
        self._rows: list[Row] = []
        self._peaks: dict[str, dict[str, int]] = {}
        self._is_tracking = False

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        limits = list(item.iter_markers("limit_device_memory"))
        leaks = list(item.iter_markers("limit_device_leaks"))
        if not (self._shows or self._watches_increase or limits or leaks):
            yield
            return
        self._track()
        before = {memory: _buffers(memory) for memory in _MEMORIES}
        step = tt_shm.step(item.nodeid)
        with step:
            outcome = yield
            # Tensors in cycles are not left over, they wait for the collector.
            gc.collect()
        self._note(item, step)
        if outcome.excinfo is not None:
            return
        failures = [failure for mark in limits if (failure := _over_limit(step, mark))]
        failures += [failure for mark in leaks if (failure := _leaked(step, before, mark))]
        if self._watches_increase:
            failures += self._increased(item.nodeid, step)
        if failures:
            outcome.force_exception(pytest.fail.Exception("\n".join(failures), pytrace=False))

    def _track(self) -> None:
        # A tracker of the tests reports in the place of the tap.
        if self._is_tracking or _tap.reports_by_itself():
            return
        self._is_tracking = True
        try:
            tt_shm.track()
        except (OSError, tt_shm.Error) as error:
            warnings.warn(pytest.PytestWarning(f"what ttnn allocates is not seen: {error}"), stacklevel=1)

    def _note(self, item: pytest.Item, step: tt_shm.Step) -> None:
        l1 = step.of(memory="l1")
        row: Row = {
            "test": item.nodeid,
            "peak": step.peak,
            "added": step.added,
            "left_over": step.left_over,
            "l1_peak": None if l1 is None else l1.peak,
            "exact": step.exact and (l1 is None or l1.exact),
        }
        item.user_properties.append(("tt_memory", row))

    def _increased(self, test: str, step: tt_shm.Step) -> list[str]:
        known: dict[str, dict[str, int]] = _cache(self._config).get(_PEAKS, {})
        failures = []
        now: dict[str, int] = {}
        for memory in _MEMORIES:
            level = step.of(memory=memory)
            if level is None or not level.exact:
                continue
            now[memory] = level.added
            last = known.get(test, {}).get(memory)
            if last is not None and level.added > last:
                failures.append(
                    f"{test} took {tt_shm.format_bytes(level.added)} of {memory}, "
                    f"{tt_shm.format_bytes(level.added - last)} more than in its last successful run"
                )
        if not failures:
            self._peaks[test] = now
        return failures

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._rows += [value for name, value in report.user_properties if name == "tt_memory"]  # type: ignore[misc]

    def pytest_sessionfinish(self) -> None:
        if self._peaks:
            cache = _cache(self._config)
            cache.set(_PEAKS, {**cache.get(_PEAKS, {}), **self._peaks})

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._shows:
            return
        rows = sorted(self._rows, key=lambda row: -(row["peak"] or 0))
        if self._most is not None:
            rows = rows[: self._most]
        terminalreporter.section("device memory")
        terminalreporter.line(f"{'DRAM PEAK':>12}{'ADDED':>12}{'LEFT OVER':>12}{'L1 PEAK':>12}  TEST")
        for row in rows:
            figures = (row["peak"], row["added"], row["left_over"], row["l1_peak"])
            shown = "".join(f"{tt_shm.format_bytes(figure):>12}" for figure in figures)
            terminalreporter.line(f"{shown}  {row['test']}{'' if row['exact'] else '  (not exact: at least)'}")
        if not rows:
            terminalreporter.line("no test ran")


def _cache(config: pytest.Config) -> Any:
    # Not there with `-p no:cacheprovider`.
    cache = getattr(config, "cache", None)
    if cache is None:
        raise pytest.UsageError("--tt-memory-fail-on-increase needs pytest's cache, which is off")
    return cache


def _limit(mark: pytest.Mark) -> int:
    if len(mark.args) != 1:
        raise pytest.UsageError(f'{mark.name} takes one limit, such as "1.5 GiB"')
    return tt_shm.parse_bytes(mark.args[0])


def _over_limit(step: tt_shm.Step, mark: pytest.Mark) -> str | None:
    limit, memory = _limit(mark), mark.kwargs.get("memory", "dram")
    is_total = bool(mark.kwargs.get("total", False))
    levels = step.levels(mark.kwargs.get("device"), memory)
    if not levels:
        return None
    level = max(levels, key=lambda level: level.peak if is_total else level.added)
    taken = level.peak if is_total else level.added
    if taken <= limit:
        if not level.exact:
            text = f"{step.name} took at least {tt_shm.format_bytes(taken)} of {memory}; its limit cannot be checked exactly"
            warnings.warn(pytest.PytestWarning(text), stacklevel=1)
        return None
    lines = [
        f"{step.name} took {tt_shm.format_bytes(taken)} of {memory} on device {level.device}, "
        f"limit {tt_shm.format_bytes(limit)} ({tt_shm.format_bytes(level.begin)} were there before)"
    ]
    for part in (level.parts or ())[:_SHOWN_PARTS]:
        name = part.name or "no name"
        lines.append(f"  {tt_shm.format_bytes(part.bytes):>12} {part.kind:8} x{part.count} {name}")
    return "\n".join(lines)


def _buffers(memory: str) -> dict[int, int]:
    """Bytes of live buffers by chip. Circular buffers stay resident after their program has run, and are no leak."""
    l1 = is_l1(memory)
    return {
        chip.chip_id: sum(
            figures[1] for entry in chip.entries for name, figures in entry.counters.classes(l1).items() if name != "cb"
        )
        for chip in Reading.of().chips
    }


def _leaked(step: tt_shm.Step, before: dict[tt_shm.Memory, dict[int, int]], mark: pytest.Mark) -> str | None:
    limit, memory = _limit(mark), mark.kwargs.get("memory", "dram")
    device = mark.kwargs.get("device")
    wanted = {chip.chip_id for chip in Reading.of().select(device)}
    left = {chip: held - before[memory].get(chip, 0) for chip, held in _buffers(memory).items() if chip in wanted}
    chip, most = max(left.items(), key=lambda item: item[1], default=(None, 0))
    if most <= limit:
        return None
    lines = [f"{step.name} left {tt_shm.format_bytes(most)} of {memory} behind, limit {tt_shm.format_bytes(limit)}"]
    found = [
        one
        for one in tt_shm.live_allocations(memory=memory)
        if one.chip_id == chip and one.kind != "cb" and one.age_ns <= step.age_ns()
    ]
    for one in sorted(found, key=lambda one: -one.size)[:_SHOWN_PARTS]:
        lines.append(f"  {tt_shm.format_bytes(one.size):>12} {one.kind:8} {one.name or 'no name'}")
    return "\n".join(lines)
