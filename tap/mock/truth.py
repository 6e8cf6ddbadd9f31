"""Compares what tt-smi shows of this process with what tt-metal itself says, after every step.

    python truth.py SMI MACHINE SCENARIO...

The tap is loaded by whoever starts this. tt-smi is another process. Nothing of ours is taken for true: the views of the
allocator (`ttnn.get_memory_view`) and its lists of buffers are. Ends with the number of comparisons, and with 1 if one of
them was different.
"""

import collections
import ctypes
import gc
import json
import os
import random
import subprocess
import sys
import threading
import types

import ttnn

# ttnn's decorators ask whether something is a torch.Tensor; nothing else of torch is needed. ttnn itself looks for
# torch while it is imported, so this comes after it.
sys.modules["torch"] = types.ModuleType("torch")
sys.modules["torch"].Tensor = type("Tensor", (), {})

SMI, MACHINE = sys.argv[1], sys.argv[2]
SHAPES = {"n150": (1, 1), "n300": (1, 2), "t3k": (2, 4), "p150": (1, 1), "p150x8": (2, 4)}
KINDS = {
    "dram": ttnn.BufferType.DRAM,
    "l1": ttnn.BufferType.L1,
    "l1_small": ttnn.BufferType.L1_SMALL,
    "trace": ttnn.BufferType.TRACE,
}
# Not into tt-smi: it does not load tt-metal, but what it is started with is not its business.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}

comparisons = differences = 0


def ask(*arguments):
    """What tt-smi says."""
    asked = subprocess.run([SMI, *arguments, "--json"], env=ENVIRONMENT, capture_output=True, text=True)
    if asked.returncode:
        sys.exit(f"tt-smi {' '.join(arguments)} failed: {asked.stderr}")
    return json.loads(asked.stdout)


def equal(step, what, shown, true):
    """One comparison."""
    global comparisons, differences
    comparisons += 1
    if shown != true:
        differences += 1
        print(f"{MACHINE}: {step}: {what}: tt-smi shows {shown}, tt-metal says {true}", flush=True)


class Truth:
    """What tt-metal says of the meshes that are open."""

    def __init__(self, *meshes):
        self.meshes = list(meshes)

    def by_chip(self):
        """Bytes that are occupied on each chip, by kind: all banks, all meshes that the chip is in."""
        chips = collections.defaultdict(lambda: dict.fromkeys(KINDS, 0))
        for mesh in self.meshes:
            for kind, code in KINDS.items():
                view = ttnn.get_memory_view(mesh, code)
                for chip in mesh.get_device_ids():
                    chips[chip][kind] += view.num_banks * view.total_bytes_allocated_per_bank
        return chips

    def buffers(self):
        """Kind and address of every buffer, as often as it is there on one chip."""
        names = {str(code): kind for kind, code in KINDS.items()}
        listed = (buffer for mesh in self.meshes for buffer in ttnn._ttnn.reports.get_buffers(mesh))
        return collections.Counter((names[str(buffer.buffer_type)], buffer.address) for buffer in listed)

    def check(self, step, buffers=True):
        """Compares everything."""
        snapshot = ask("snapshot")
        equal(step, "errors", snapshot["errors"], [])
        mine = [process for process in snapshot["processes"] if process["pid"] == os.getpid()]
        true = self.by_chip()
        if not mine:
            equal(step, "bytes of a process that is not seen", {}, {c: k for c, k in true.items() if any(k.values())})
            return
        (mine,) = mine
        equal(step, "misuse", mine["anomalies"], {})
        equal(step, "checks that found a difference", mine["self_checks_different"], 0)
        shown = collections.defaultdict(lambda: dict.fromkeys(KINDS, 0))
        for usage in mine["devices"]:
            for kind in KINDS:
                shown[usage["logical_id"]][kind] += usage["classes"][kind]["live_bytes"]
        for chip, kinds in true.items():
            for kind, bytes_ in kinds.items():
                equal(step, f"{kind} of chip {chip}", shown[chip][kind], bytes_)
        for chip in set(shown) - set(true):
            equal(step, f"closed chip {chip}", shown[chip], dict.fromkeys(KINDS, 0))
        if buffers and len(self.meshes) == 1:
            chip = self.meshes[0].get_device_ids()[0]
            (device,) = {usage["index"] for usage in mine["devices"] if usage["logical_id"] == chip}
            self.check_buffers(step, device)

    def check_buffers(self, step, device):
        listing = ask("allocations", "--pid", str(os.getpid()), "--device", str(device))
        shown = collections.Counter(
            (one["class"], one["address"]) for one in listing["allocations"] if one["class"] in KINDS
        )
        equal(step, "list of buffers", shown, self.buffers())


def open_mesh(**options):
    shape = ttnn.MeshShape(*SHAPES[MACHINE])
    return ttnn.open_mesh_device(shape, l1_small_size=32768, trace_region_size=1 << 20, **options)


def tensor(mesh, shape, memory=ttnn.DRAM_MEMORY_CONFIG, layout=ttnn.TILE_LAYOUT):
    return ttnn.allocate_tensor_on_device(ttnn.Shape(shape), ttnn.bfloat16, layout, mesh, memory)


def sharded(kind, layout, last_core, shard):
    cores = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(*last_core))})
    return ttnn.MemoryConfig(layout, kind, ttnn.ShardSpec(cores, shard, ttnn.ShardOrientation.ROW_MAJOR))


def refused(work):
    """Something that tt-metal has to refuse."""
    try:
        work()
    except RuntimeError as error:
        return str(error)
    raise AssertionError("that should have failed")


def walk():
    """Everything that a single program does with memory, step by step."""
    mesh = open_mesh()
    truth = Truth(mesh)
    layouts = ttnn.TensorMemoryLayout
    truth.check("opened")
    held = {"dram": tensor(mesh, [1, 1, 512, 512])}
    truth.check("interleaved in DRAM")
    held["odd"] = tensor(mesh, [1, 1, 7, 100], layout=ttnn.ROW_MAJOR_LAYOUT)
    truth.check("pages of 200 bytes")
    held["l1"] = tensor(mesh, [1, 1, 256, 256], ttnn.L1_MEMORY_CONFIG)
    truth.check("interleaved in L1")
    for name, memory, shape in (
        ("height", sharded(ttnn.BufferType.L1, layouts.HEIGHT_SHARDED, (7, 0), [32, 64]), [1, 1, 256, 64]),
        ("block", sharded(ttnn.BufferType.L1, layouts.BLOCK_SHARDED, (1, 1), [64, 64]), [1, 1, 128, 128]),
        ("small", sharded(ttnn.BufferType.L1_SMALL, layouts.HEIGHT_SHARDED, (3, 0), [32, 32]), [1, 1, 128, 32]),
        ("width", sharded(ttnn.BufferType.DRAM, layouts.WIDTH_SHARDED, (3, 0), [64, 32]), [1, 1, 64, 128]),
    ):
        held[name] = tensor(mesh, shape, memory)
        truth.check(f"sharded: {name}")
    on_a_thread(lambda: held.update(thread=tensor(mesh, [1, 1, 1024, 1024])))
    truth.check("allocated on another thread")
    ttnn.deallocate(held.pop("thread"))
    truth.check("freed on this one")
    held["sum"] = ttnn.add(held["dram"], held["dram"])
    truth.check("an operation")
    held["again"] = ttnn.add(held["dram"], held["dram"])
    truth.check("the same from the cache")
    held["product"] = ttnn.matmul(held["dram"], held["dram"], memory_config=ttnn.L1_MEMORY_CONFIG)
    truth.check("a matrix product in L1")
    held["softmax"] = ttnn.softmax(held["dram"], dim=-1)
    truth.check("softmax")
    ttnn.deallocate(held["again"])
    ttnn.deallocate(held.pop("again"))
    truth.check("freed twice")
    held["view"] = ttnn.reshape(held["dram"], [1, 1, 1024, 256])
    truth.check("a view")
    held["moved"] = ttnn.move(held.pop("l1"))
    truth.check("moved")
    failures = ask("snapshot")["processes"][0]["devices"][0]["failed_allocs"]
    refused(lambda: tensor(mesh, [1, 1, 1 << 17, 1 << 17]))
    truth.check("out of DRAM")
    refused(lambda: tensor(mesh, [1, 1, 1 << 14, 1 << 14], ttnn.L1_MEMORY_CONFIG))
    truth.check("out of L1")
    seen = ask("snapshot")["processes"][0]["devices"][0]["failed_allocs"]
    equal("out of memory", "failures", seen - failures, 2)
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
    captured = tensor(mesh, [1, 1, 2048, 2048])
    held["captured"] = ttnn.add(captured, captured)
    del captured, held["captured"]
    ttnn.graph.end_graph_capture()
    truth.check("captured and not run")
    mesh.clear_program_cache()
    truth.check("without cached programs")
    kept = held.pop("dram"), held.pop("height"), held.pop("view")
    held.clear()
    gc.collect()
    truth.check("most of it deleted")
    ttnn.close_mesh_device(mesh)
    truth.meshes.clear()
    truth.check("closed with tensors that live")
    del kept
    gc.collect()
    truth.check("those deleted")
    for _ in range(3):
        mesh = open_mesh()
        truth.meshes.append(mesh)
        held["reopened"] = tensor(mesh, [1, 1, 64, 64])
        truth.check("opened again")
        held.clear()
        gc.collect()
        truth.check("freed again")
        ttnn.close_mesh_device(mesh)
        truth.meshes.clear()
        truth.check("closed again")


def submesh():
    """A mesh and a part of it, which have allocators of their own on the same chips."""
    mesh = open_mesh()
    truth = Truth(mesh)
    part = mesh.create_submesh(ttnn.MeshShape(1, SHAPES[MACHINE][1]))
    truth.meshes.append(part)
    one = tensor(mesh, [1, 1, 512, 512])
    truth.check("on the mesh")
    two = tensor(part, [1, 1, 256, 512])
    truth.check("on its part")
    three = tensor(part, [1, 1, 256, 256], ttnn.L1_MEMORY_CONFIG)
    truth.check("in L1 of its part")
    del one
    gc.collect()
    truth.check("freed on the mesh")
    del two, three
    gc.collect()
    truth.check("freed on its part")
    ttnn.close_mesh_device(part)
    ttnn.close_mesh_device(mesh)
    truth.meshes.clear()
    truth.check("closed")


def on_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def late():
    """The tap is put in place when tensors live already; nothing is known before its first call, and all after it."""
    mesh = open_mesh()
    truth = Truth(mesh)
    held = [tensor(mesh, [1, 1, 128 * (1 + number), 256]) for number in range(7)]
    held += [tensor(mesh, [1, 1, 64, 64], ttnn.L1_MEMORY_CONFIG) for _ in range(3)]
    assert not [process for process in ask("snapshot")["processes"] if process["pid"] == os.getpid()]
    tap = ctypes.CDLL(os.environ["TAP"])
    equal("install", "hooks", tap.tt_shm_tap_install() > 0, True)
    equal("install again", "hooks", tap.tt_shm_tap_install() > 0, True)
    held.append(tensor(mesh, [1, 1, 32, 32]))
    truth.check("the first call")
    while held:
        held.pop(len(held) // 2)
        gc.collect()
        truth.check("freed one by one")
    ttnn.close_mesh_device(mesh)
    truth.meshes.clear()
    truth.check("closed")


def forked():
    """A forked child has its parent's tensors, and not its devices: whatever it does with them is not reported."""
    mesh = open_mesh()
    truth = Truth(mesh)
    held = [tensor(mesh, [1, 1, 128, 256]) for _ in range(3)]
    truth.check("before the fork")
    child = os.fork()
    if not child:
        held.clear()
        gc.collect()
        os._exit(0)
    equal("fork", "end of the child", os.waitpid(child, 0)[1], 0)
    truth.check("the child has freed everything")
    equal("fork", "processes that report", [one["pid"] for one in ask("snapshot")["processes"]], [os.getpid()])
    held.pop()
    gc.collect()
    truth.check("the parent goes on")
    held.clear()
    ttnn.close_mesh_device(mesh)


def threads():
    """Eight threads at once. A comparison is only possible when they rest, but the tap compares whenever it can."""
    mesh = open_mesh()
    truth = Truth(mesh)
    kept = []

    def work(seed):
        choose, held = random.Random(seed), []
        memories = [ttnn.DRAM_MEMORY_CONFIG, ttnn.L1_MEMORY_CONFIG]
        for _ in range(200):
            if held and choose.random() < 0.5:
                ttnn.deallocate(held.pop(choose.randrange(len(held))))
            else:
                held.append(tensor(mesh, [1, 1, 32 * choose.randint(1, 8), 64], choose.choice(memories)))
        kept.append(held)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    truth.check("eight threads rest")
    checks = ask("snapshot")["processes"][0]["self_checks"]
    equal("eight threads", "comparisons by the tap", checks > 100, True)
    kept.clear()
    gc.collect()
    truth.check("all freed")
    ttnn.close_mesh_device(mesh)


def pair():
    """Two processes on one chip, of which one is killed."""
    mesh = open_mesh()
    truth = Truth(mesh)
    held = tensor(mesh, [1, 1, 512, 512])
    other = subprocess.Popen([sys.executable, *sys.argv[:3], "hold"], stdout=subprocess.PIPE, text=True)
    theirs = next(int(line.split()[1]) for line in other.stdout if line.startswith("holds "))
    mine = sum(kinds["dram"] for kinds in truth.by_chip().values())

    def dram():
        return sum(device["dram_used_bytes"] for device in ask("snapshot")["devices"])

    equal("two processes", "DRAM of all devices", dram(), mine + theirs)
    other.kill()
    other.wait()
    equal("one killed", "DRAM of all devices", dram(), mine)
    truth.check("the other lives")
    del held
    ttnn.close_mesh_device(mesh)


def hold():
    """Holds something until it is killed, and says how much."""
    mesh = open_mesh()
    held = tensor(mesh, [1, 1, 256, 512])
    print("holds", sum(kinds["dram"] for kinds in Truth(mesh).by_chip().values()), flush=True)
    threading.Event().wait()
    del held


def randomly(steps):
    """Operations in random order, with as many comparisons as it takes."""
    mesh = open_mesh()
    truth = Truth(mesh)
    seed = int(os.environ.get("SEED", "1"))
    choose = random.Random(seed)
    base = tensor(mesh, [1, 1, 256, 256])
    held = []
    unary = [ttnn.relu, ttnn.exp, ttnn.neg, ttnn.abs, ttnn.sqrt, ttnn.square, ttnn.sigmoid, ttnn.tanh, ttnn.gelu]
    binary = [ttnn.add, ttnn.subtract, ttnn.multiply, ttnn.maximum, ttnn.minimum]
    memories = [ttnn.DRAM_MEMORY_CONFIG, ttnn.L1_MEMORY_CONFIG]
    others = {
        "matmul": lambda: ttnn.matmul(base, base, memory_config=choose.choice(memories)),
        "softmax": lambda: ttnn.softmax(base, dim=-1),
        "transpose": lambda: ttnn.transpose(base, -1, -2),
        "reshape": lambda: ttnn.reshape(base, [1, 1, 512, 128]),
        "thread": lambda: threaded(lambda: tensor(mesh, [1, 1, 32 * choose.randint(1, 40), 64])),
        "tensor": lambda: tensor(mesh, [1, 1, 32 * choose.randint(1, 40), 64], choose.choice(memories)),
    }

    def threaded(make):
        made = []
        on_a_thread(lambda: made.append(make()))
        return made[0]

    for step in range(steps):
        done = choose.choice(["unary", "binary", *others, "free", "free", "free"])
        if done == "free" or len(held) > 20:
            if held:
                held.pop(choose.randrange(len(held)))
                gc.collect()
        elif done == "unary":
            held.append(choose.choice(unary)(base, memory_config=choose.choice(memories)))
        elif done == "binary":
            held.append(choose.choice(binary)(base, base, memory_config=choose.choice(memories)))
        else:
            held.append(others[done]())
        truth.check(f"seed {seed}, step {step}: {done}", buffers=step % 10 == 0)
    del base
    held.clear()
    gc.collect()
    truth.check("all freed")
    ttnn.close_mesh_device(mesh)


SCENARIOS = {
    "walk": walk,
    "submesh": submesh,
    "late": late,
    "fork": forked,
    "threads": threads,
    "pair": pair,
    "hold": hold,
}

if __name__ == "__main__":
    for scenario in sys.argv[3:]:
        name, _, number = scenario.partition("=")
        if name == "random":
            randomly(int(number))
        else:
            SCENARIOS[name]()
    print(f"{MACHINE}: {' '.join(sys.argv[3:])}: {comparisons} comparisons, {differences} different")
    sys.exit(differences != 0)
