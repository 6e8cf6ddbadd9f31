"""The pytest plugin, tested with pytest's own pytester."""

from __future__ import annotations

import pytest

HEAD = """
import pytest, tt_shm
tracker = tt_shm.Tracker()
device = tracker.register_device(7, logical_id=0)
kept = []

@pytest.fixture(scope="session", autouse=True)
def close():
    yield
    tracker.close()

class Tensor:
    count = 0
    def __init__(self, size, memory="dram", name=None):
        Tensor.count += 1
        self.id = Tensor.count
        tracker.alloc(device, self.id, size, memory, name=name)
    def __del__(self):
        tracker.free(device, self.id)
"""


@pytest.fixture
def run(pytester: pytest.Pytester):
    def run(tests: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=HEAD + tests)
        return pytester.runpytest_subprocess(*options)

    return run


def test_a_test_that_takes_more_than_its_limit_fails_and_says_what_it_took(run) -> None:
    result = run("""
@pytest.mark.limit_device_memory("1 KiB")
def test_over():
    Tensor(4096, name="activations")

@pytest.mark.limit_device_memory("4 KiB")
def test_within():
    Tensor(4096)
    Tensor(4096)

@pytest.mark.limit_device_memory("1 KiB", memory="l1")
def test_l1():
    Tensor(1 << 20)
    Tensor(2048, "l1")

def test_without():
    Tensor(1 << 30)
""")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*test_over took 4.0 KiB of dram on device 0, limit 1.0 KiB*",
            "*4.0 KiB dram*x1 activations*",
            "*test_l1 took 2.0 KiB of l1*",
        ]
    )


def test_a_limit_is_of_what_the_test_itself_adds_unless_told_otherwise(run) -> None:
    result = run("""
@pytest.fixture
def weights():
    return Tensor(1 << 20, name="weights")

@pytest.mark.limit_device_memory("1 KiB")
def test_added(weights):
    Tensor(1000)

@pytest.mark.limit_device_memory("1 KiB", total=True)
def test_total(weights):
    Tensor(1000)
""")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*test_total took 1.0 MiB*", "*dram*weights*"])


def test_what_is_left_behind_fails_and_is_named(run) -> None:
    result = run("""
@pytest.mark.limit_device_leaks("0 B")
def test_leak():
    Tensor(100)
    kept.append(Tensor(3000, name="cache"))

@pytest.mark.limit_device_leaks("0 B")
def test_clean():
    one, other = Tensor(100), Tensor(200)
    one.cycle, other.cycle = other, one

@pytest.mark.limit_device_leaks("1 KiB")
def test_little():
    kept.append(Tensor(1000))

@pytest.mark.limit_device_leaks("0 B", memory="l1")
def test_l1():
    kept.append(Tensor(1000))
    kept.append(Tensor(7, "l1", name="scores"))

@pytest.mark.limit_device_leaks("0 B", device=99)
def test_other_device():
    kept.append(Tensor(1000))
""")
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(
        ["*test_leak left 2.9 KiB of dram behind, limit 0 B*", "*cache*", "*7 B of l1*", "*scores*"]
    )


def test_a_test_that_fails_by_itself_says_only_that(run) -> None:
    result = run("""
@pytest.mark.limit_device_memory("1 B")
@pytest.mark.limit_device_leaks("0 B")
def test_fails():
    kept.append(Tensor(100))
    assert 1 == 2
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2*"])
    result.stdout.no_fnmatch_line("*left*behind*")


TWO = """
def test_small():
    Tensor(1000)

def test_large():
    kept.append(Tensor(1 << 20))
    Tensor(2048, "l1")
"""


def test_a_table_of_all_tests_or_of_the_largest(run) -> None:
    result = run(TWO, "--tt-memory")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "*DRAM PEAK*ADDED*LEFT OVER*L1 PEAK*TEST",
            "*1.0 MiB*1.0 MiB*1.0 MiB*2.0 KiB*::test_large",
            "*1000 B*1000 B*0 B*0 B*::test_small",
        ]
    )
    result.stdout.no_fnmatch_line("*not exact*")
    result = run(TWO, "--tt-memory-most-allocations=1")
    result.stdout.fnmatch_lines(["*::test_large"])
    result.stdout.no_fnmatch_line("*::test_small")
    run(TWO).stdout.no_fnmatch_line("*DRAM PEAK*")


def test_an_increase_since_the_last_successful_run_fails(run) -> None:
    option = "--tt-memory-fail-on-increase"

    def with_size(size: int, *options: str) -> pytest.RunResult:
        return run(f"def test_one():\n    Tensor({size})\n", *options)

    with_size(1000, option).assert_outcomes(passed=1)
    with_size(1000, option).assert_outcomes(passed=1)
    result = with_size(1500, option)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*test_one took 1.5 KiB of dram, 500 B more than in its last successful run*"])
    with_size(1200, option).assert_outcomes(failed=1)
    with_size(800, option).assert_outcomes(passed=1)
    with_size(900, option).assert_outcomes(failed=1)
    with_size(5000).assert_outcomes(passed=1)


def test_what_is_not_exact_says_so(run) -> None:
    result = run(
        """
@pytest.mark.limit_device_memory("1 KiB")
def test_doubtful():
    tracker.partial()
    Tensor(100)
""",
        "--tt-memory",
    )
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*at least 100 B*"])
    result.stdout.fnmatch_lines(["*::test_doubtful  (not exact: at least)"])


def test_a_limit_that_is_none_is_an_error(run) -> None:
    result = run("""
@pytest.mark.limit_device_memory("much")
def test_it():
    pass
""")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*'much' is no number of bytes*"])


def test_without_marks_and_options_nothing_is_loaded(run) -> None:
    run("""
def test_it():
    assert "libtt_shm_tap" not in open("/proc/self/maps").read()
""").assert_outcomes(passed=1)


def test_markers_are_registered(run) -> None:
    run(TWO, "--strict-markers", "--markers").stdout.fnmatch_lines(
        ["@pytest.mark.limit_device_memory(*", "@pytest.mark.limit_device_leaks(*"]
    )
