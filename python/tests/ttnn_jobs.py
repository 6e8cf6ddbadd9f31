"""Jobs with the real ttnn, in tt-metal's mock mode, for test_ttnn.py: each in a process of its own.

    python ttnn_jobs.py JOB [before-import | before-open | late]

The allocator's own view (`ttnn.get_memory_view`) is the truth that figures are compared with.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import tt_shm

WHEN = sys.argv[2] if len(sys.argv) > 2 else "before-import"
if WHEN == "before-import":
    assert tt_shm.track() is False

import ttnn  # noqa: E402

# ttnn's decorators ask whether something is a torch.Tensor; nothing else of torch is needed.
sys.modules["torch"] = types.ModuleType("torch")
sys.modules["torch"].Tensor = type("Tensor", (), {})  # type: ignore[attr-defined]

SHAPES = {"n150": (1, 1), "t3k": (2, 4)}
SHAPE = SHAPES[os.environ.get("MACHINE", "n150")]
comparisons = 0


def open_mesh(**options: Any) -> Any:
    return ttnn.open_mesh_device(ttnn.MeshShape(*SHAPE), l1_small_size=32768, trace_region_size=1 << 20, **options)


def tensor(mesh: Any, shape: list[int], memory: Any = ttnn.DRAM_MEMORY_CONFIG) -> Any:
    return ttnn.allocate_tensor_on_device(ttnn.Shape(shape), ttnn.bfloat16, ttnn.TILE_LAYOUT, mesh, memory)


def truth(mesh: Any, *kinds: Any) -> int:
    views = [ttnn.get_memory_view(mesh, kind) for kind in kinds]
    return sum(view.num_banks * view.total_bytes_allocated_per_bank for view in views)


def dram(mesh: Any) -> int:
    return truth(mesh, ttnn.BufferType.DRAM, ttnn.BufferType.TRACE)


def equal(what: str, shown: object, true: object) -> None:
    global comparisons
    comparisons += 1
    assert shown == true, f"{what}: tt_shm says {shown}, tt-metal {true}"


def settle(mesh: Any) -> None:
    """Waits until figures are exact: after a late start the tap has to be sure that it has missed nothing."""
    while True:
        tensor(mesh, [1, 1, 32, 32])
        try:
            tt_shm.memory_allocated(mesh, strict=True)
            return
        except tt_shm.InexactError:
            time.sleep(0.02)


KEPT: list[Any] = []
"""What lived before tracking began."""


def tracked_mesh() -> Any:
    """A mesh that is tracked: by when, as the command line says."""
    if WHEN == "before-open":
        assert tt_shm.track() is True
    mesh = open_mesh()
    if WHEN == "late":
        KEPT.extend([tensor(mesh, [1, 1, 256, 256]), tensor(mesh, [1, 1, 64, 64], ttnn.L1_MEMORY_CONFIG)])
        assert tt_shm.track() is True
        settle(mesh)
    return mesh


def walk() -> None:
    """Figures after every step of a small program."""
    mesh = tracked_mesh()
    held: list[Any] = []
    most = dram(mesh)
    tt_shm.reset_peak_memory_stats(mesh)
    chips = list(mesh.get_device_ids())

    def check(step: str) -> None:
        nonlocal most
        now = dram(mesh)
        most = max(most, now)
        for name in (mesh, None, *chips):
            equal(f"{step}: allocated", tt_shm.memory_allocated(name, strict=True), now)
            equal(f"{step}: peak", tt_shm.max_memory_allocated(name, strict=True), most)
        stats = tt_shm.memory_stats(mesh, memory="l1", strict=True)
        buffers = stats["allocated_bytes.l1.current"] + stats["allocated_bytes.l1_small.current"]
        equal(f"{step}: L1 buffers", buffers, truth(mesh, ttnn.BufferType.L1, ttnn.BufferType.L1_SMALL))
        listed = [one for one in tt_shm.live_allocations(chips[0], memory="dram", strict=True)]
        equal(f"{step}: sum of the list", sum(one.size for one in listed), now)
        view = ttnn.get_memory_view(mesh, ttnn.BufferType.DRAM)
        trace = ttnn.get_memory_view(mesh, ttnn.BufferType.TRACE)
        total = sum(one.num_banks * one.total_bytes_per_bank for one in (view, trace))
        equal(f"{step}: free", tt_shm.mem_get_info(mesh, strict=True), (total - now, total))

    check("begin")
    held.append(tensor(mesh, [1, 1, 512, 512]))
    check("in DRAM")
    held.append(tensor(mesh, [1, 1, 256, 256], ttnn.L1_MEMORY_CONFIG))
    check("in L1")
    held.append(ttnn.add(held[0], held[0]))
    check("an operation")
    names = {one.name for one in tt_shm.live_allocations(chips[0])}
    assert "BinaryNgDeviceOperation" in names, names
    held.append(ttnn.matmul(held[0], held[0]))
    check("a product")
    ttnn.deallocate(held.pop(0))
    check("freed")
    held.clear()
    gc.collect()
    check("all freed")
    most = dram(mesh)
    tt_shm.reset_peak_memory_stats(mesh)
    check("peaks begin anew")
    KEPT.clear()
    ttnn.close_mesh_device(mesh)


def threads() -> None:
    """Eight threads allocate and free; peaks are those that all of them together reached."""
    mesh = tracked_mesh()
    begin = dram(mesh)
    tt_shm.reset_peak_memory_stats(mesh)
    lock, high = threading.Lock(), begin
    barrier = threading.Barrier(8)

    def work(seed: int) -> None:
        nonlocal high
        chance, held = random.Random(seed), []
        barrier.wait()
        for _ in range(150):
            if held and chance.random() < 0.45:
                held.pop(chance.randrange(len(held)))
            else:
                shape = [1, 1, 32 * chance.randint(1, 16), 32 * chance.randint(1, 16)]
                held.append(tensor(mesh, shape))
            with lock:
                high = max(high, dram(mesh))
        del held

    with tt_shm.step("threads") as step:
        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        gc.collect()
    peak = tt_shm.max_memory_allocated(mesh, strict=True)
    # The allocator has no peak. It was looked at after every call, in between which others may have gone further.
    assert peak is not None and high <= peak, (high, peak)
    equal("at rest", tt_shm.memory_allocated(mesh, strict=True), dram(mesh))
    equal("at rest, as at the beginning", dram(mesh), begin)
    equal("peak of the step", (step.peak, step.exact, step.missed), (peak, True, 0))
    assert step.composition is not None and sum(step.composition.values()) == peak
    one_at_a_time(mesh)
    print(f"seen by looking {high}, peak {peak}")
    KEPT.clear()
    ttnn.close_mesh_device(mesh)


def one_at_a_time(mesh: Any) -> None:
    """Threads that take turns: then the allocator's view after each call has the exact peak."""
    tt_shm.reset_peak_memory_stats(mesh)
    lock, high = threading.Lock(), dram(mesh)

    def work(seed: int) -> None:
        nonlocal high
        chance, held = random.Random(seed), []
        for _ in range(60):
            with lock:
                if held and chance.random() < 0.45:
                    held.pop(chance.randrange(len(held)))
                else:
                    held.append(tensor(mesh, [1, 1, 32 * chance.randint(1, 16), 32 * chance.randint(1, 16)]))
                high = max(high, dram(mesh))
                equal("in between", tt_shm.memory_allocated(mesh, strict=True), dram(mesh))
        with lock:
            held.clear()

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    equal("peak of threads that take turns", tt_shm.max_memory_allocated(mesh, strict=True), high)


def steps() -> None:
    """Peaks of steps, by operation."""
    mesh = tracked_mesh()
    weights = tensor(mesh, [1, 1, 1024, 1024])
    for turn in range(3):
        begin = dram(mesh)
        with tt_shm.step(f"layer {turn}", mesh, strict=True) as step:
            product = ttnn.matmul(weights, weights)
            after_product = dram(mesh)
            total = ttnn.add(product, product)
            high = dram(mesh)
            del product
        equal("peak", step.peak, high)
        equal("left over", step.left_over, dram(mesh) - begin)
        composition = step.composition
        assert composition is not None
        equal("product", composition["MatmulDeviceOperation"], after_product - begin)
        equal("sum", composition["BinaryNgDeviceOperation"], high - after_product)
        del total
    markers = [one for one in tt_shm.follow(position=0, timeout=0) if one.kind == "MARKER"]
    equal("markers", [(one.phase, one.name) for one in markers[-2:]], [("begin", "layer 2"), ("end", "layer 2")])
    KEPT.clear()
    ttnn.close_mesh_device(mesh)


def within() -> None:
    """A step in which tracking begins and the device is opened."""
    with tt_shm.step("all of it") as step:
        tt_shm.track()
        mesh = open_mesh()
        one = tensor(mesh, [1, 1, 512, 512])
        high = dram(mesh)
        del one
        equal("end", tt_shm.memory_allocated(mesh), dram(mesh))
    equal("peak", (step.peak, step.exact), (high, True))
    ttnn.close_mesh_device(mesh)


def reopen() -> None:
    """Devices that are closed and opened again, and an end of tracking."""
    for _ in range(3):
        mesh = tracked_mesh()
        one = tensor(mesh, [1, 1, 128, 128])
        equal("open", tt_shm.memory_allocated(mesh, strict=True), dram(mesh))
        del one
        KEPT.clear()
        ttnn.close_mesh_device(mesh)
        equal("closed", tt_shm.memory_allocated(strict=True), 0)
    assert tt_shm.untrack() is True
    equal("untracked", tt_shm.memory_allocated(), None)
    mesh = open_mesh()
    one = tensor(mesh, [1, 1, 128, 128])
    equal("untracked", tt_shm.memory_allocated(), None)
    assert tt_shm.track() is True
    settle(mesh)
    equal("tracked again", tt_shm.memory_allocated(mesh, strict=True), dram(mesh))
    del one
    ttnn.close_mesh_device(mesh)


def child() -> None:
    """A forked child knows nothing of its parent's devices."""
    mesh = tracked_mesh()
    one = tensor(mesh, [1, 1, 128, 128])
    pid = os.fork()
    if pid == 0:
        os._exit(0 if tt_shm.memory_allocated() is None and tt_shm.memory_allocated(pid=os.getppid()) else 1)
    equal("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
    equal("parent", tt_shm.memory_allocated(mesh, strict=True), dram(mesh))
    del one
    KEPT.clear()
    ttnn.close_mesh_device(mesh)


JOBS: dict[str, Callable[[], None]] = {
    job.__name__: job for job in (walk, threads, steps, within, reopen, child)
}

if __name__ == "__main__":
    JOBS[sys.argv[1]]()
    print(f"{comparisons} comparisons, 0 different")
