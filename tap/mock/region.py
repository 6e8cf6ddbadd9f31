"""Does with a real tt-metal what it is told, and says what it holds: for comparison with the region that tt-metal publishes.

    python region.py

A line on stdin is a command, and its answer is a line of JSON on stdout: the bytes of all tensors that live, by this
script's own arithmetic ("requested"), and what the allocator says that they occupy.
"""

import json
import sys
import threading
import time
import types

import ttnn

# See truth.py.
sys.modules["torch"] = types.ModuleType("torch")
sys.modules["torch"].Tensor = type("Tensor", (), {})

MEMORIES = {"dram": ttnn.DRAM_MEMORY_CONFIG, "l1": ttnn.L1_MEMORY_CONFIG}
KINDS = {"dram": ttnn.BufferType.DRAM, "l1": ttnn.BufferType.L1}
mesh = None
# Tensors by name, with kind and bytes.
held = {}


def tensor(kind, rows, columns):
    """Two bytes per element, in tiles of 32 x 32."""
    shape = ttnn.Shape([1, 1, rows, columns])
    return ttnn.allocate_tensor_on_device(shape, ttnn.bfloat16, ttnn.TILE_LAYOUT, mesh, MEMORIES[kind])


def requested():
    return {kind: sum(bytes_ for _, of, bytes_ in held.values() if of == kind) for kind in KINDS}


def occupied():
    views = {kind: ttnn.get_memory_view(mesh, code) for kind, code in KINDS.items()} if mesh else {}
    return {kind: view.num_banks * view.total_bytes_allocated_per_bank for kind, view in views.items()}


def alloc(name, kind, rows, columns):
    held[name] = tensor(kind, int(rows), int(columns)), kind, int(rows) * int(columns) * 2


def on_a_thread(*command):
    thread = threading.Thread(target=lambda: COMMANDS[command[0]](*command[1:]))
    thread.start()
    thread.join()


def free(name):
    ttnn.deallocate(held.pop(name)[0])


def operate(operation, name, of):
    """An operation on one tensor, whose result is as large."""
    one, _, bytes_ = held[of]
    held[name] = getattr(ttnn, operation)(one, one), "dram", bytes_


def open_device():
    global mesh
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 1), l1_small_size=32768, trace_region_size=1 << 20)


def close():
    global mesh
    held.clear()
    ttnn.close_mesh_device(mesh)
    mesh = None


def loop(seconds):
    """Allocates and frees, with a line for each step: when it began and when it was done, and what is held then."""
    end, number = time.monotonic() + float(seconds), 0
    while time.monotonic() < end:
        number += 1
        kind = ("dram", "l1")[number % 2]
        begun = time.time_ns()
        if number % 7 < 4:
            alloc(number, kind, 32 * (1 + number % 5), 32)
        else:
            free(next(name for name in held if isinstance(name, int)))
        print(json.dumps({"begun": begun, "done": time.time_ns(), "requested": requested()}), flush=True)
        # Long and short pauses, so that a reader meets both.
        time.sleep((0.0001, 0.003, 0.04)[number % 3])


COMMANDS = {
    "open": open_device,
    "alloc": alloc,
    "thread": on_a_thread,
    "free": free,
    "operate": operate,
    "loop": loop,
    "close": close,
}

if __name__ == "__main__":
    for line in sys.stdin:
        command, *arguments = line.split()
        COMMANDS[command](*arguments)
        print(json.dumps({"requested": requested(), "occupied": occupied()}), flush=True)
