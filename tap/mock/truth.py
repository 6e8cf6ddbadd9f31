"""Compares what tt-smi shows of this process with what tt-metal itself says, after every step.

    python truth.py SMI MACHINE SCENARIO...

The tap is loaded by whoever starts this. tt-smi is another process. Nothing of ours is taken for true: the views of the
allocator (`ttnn.get_memory_view`) and its lists of buffers are. Ends with the number of comparisons, and with 1 if one of
them was different.
"""

import collections
import ctypes
import gc
import importlib.metadata
import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import threading
import time
import types

import ttnn

# ttnn's decorators ask whether something is a torch.Tensor; nothing else of torch is needed. ttnn itself looks for
# torch while it is imported, so this comes after it.
sys.modules["torch"] = types.ModuleType("torch")
sys.modules["torch"].Tensor = type("Tensor", (), {})

SMI, MACHINE = sys.argv[1], sys.argv[2]
VERSION = tuple(int(part) for part in importlib.metadata.version("ttnn").split(".")[:2])
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
        seen = [process for process in snapshot["processes"] if process["pid"] == os.getpid()]
        true = self.by_chip()
        if not seen:
            equal(step, "bytes of a process that is not seen", {}, {c: k for c, k in true.items() if any(k.values())})
            return
        (seen,) = seen
        equal(step, "misuse", seen["anomalies"], {})
        equal(step, "checks that found a difference", seen["self_checks_different"], 0)
        shown = collections.defaultdict(lambda: dict.fromkeys(KINDS, 0))
        for usage in seen["devices"]:
            for kind in KINDS:
                shown[usage["logical_id"]][kind] += usage["classes"][kind]["live_bytes"]
        for chip, kinds in true.items():
            for kind, bytes_ in kinds.items():
                equal(step, f"{kind} of chip {chip}", shown[chip][kind], bytes_)
        for chip in set(shown) - set(true):
            equal(step, f"closed chip {chip}", shown[chip], dict.fromkeys(KINDS, 0))
        if buffers and len(self.meshes) == 1:
            chip = self.meshes[0].get_device_ids()[0]
            (device,) = {usage["index"] for usage in seen["devices"] if usage["logical_id"] == chip}
            self.check_buffers(step, device)

    def check_buffers(self, step, device):
        listing = ask("allocations", "--pid", str(os.getpid()), "--device", str(device))
        shown = collections.Counter(
            (one["class"], one["address"]) for one in listing["allocations"] if one["class"] in KINDS
        )
        equal(step, "list of buffers", shown, self.buffers())


def chip_ids():
    """The id of each chip, as the machine is described; made up by the tap in versions that do not tell it."""
    with open(os.environ["TT_METAL_MOCK_CLUSTER_DESC_PATH"]) as described:
        ids = re.search(r"chip_unique_ids: {(.*)}", described.read()).group(1)
    ids = dict((int(part) for part in pair.split(":")) for pair in ids.split(","))
    return ids if VERSION > (0, 66) else {chip: 0xFFFF_FFFF_0000_0000 | chip for chip in ids}


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
    devices = ask("snapshot")["devices"]
    shown = {device["logical_id"]: int(device["chip_id"], 16) for device in devices}
    equal("chips", "ids", shown, chip_ids())
    arch = "blackhole" if MACHINE.startswith("p150") else "wormhole_b0"
    equal("chips", "architectures", {device["arch"] for device in devices}, {arch})
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
    equal("the first call", "exact", mine()["devices"][0]["dram_used_exact"], False)
    time.sleep(1.1)
    held.append(tensor(mesh, [1, 1, 64, 32]))
    truth.check("a second later")
    # Of earlier versions not all that programs take is seen, and nothing is ever exact.
    equal("a second later", "exact", mine()["devices"][0]["dram_used_exact"], VERSION >= (0, 75))
    while held:
        held.pop(len(held) // 2)
        gc.collect()
        truth.check("freed one by one")
    ttnn.close_mesh_device(mesh)
    truth.meshes.clear()
    truth.check("closed")


def unlisted():
    """The tap comes late to a tt-metal that cannot list what lives: then it is not known, and nothing is shown."""
    mesh = open_mesh()
    held = [tensor(mesh, [1, 1, 128, 256])]
    equal("install", "hooks", ctypes.CDLL(os.environ["TAP"]).tt_shm_tap_install() > 0, True)
    held.append(tensor(mesh, [1, 1, 32, 32]))
    equal("what lives cannot be listed", "processes", ask("snapshot")["processes"], [])
    held.clear()
    ttnn.close_mesh_device(mesh)


def hybrid():
    """Buffers of a hybrid allocator, some of which take only the cores of their shards."""
    mesh = open_mesh()
    truth = Truth(mesh)
    height = ttnn.TensorMemoryLayout.HEIGHT_SHARDED
    memory = sharded(ttnn.BufferType.L1, height, (7, 0), [32, 64])
    held = [tensor(mesh, [1, 1, 512, 512]), tensor(mesh, [1, 1, 256, 64], memory)]
    truth.check("as without")

    def l1():
        (mine,) = (process for process in ask("snapshot")["processes"] if process["pid"] == os.getpid())
        equal("hybrid", "checks that found a difference", mine["self_checks_different"], 0)
        return sum(usage["classes"]["l1"]["live_bytes"] for usage in mine["devices"])

    expected, chips = l1(), len(mesh.get_device_ids())
    for cores in (8, 8, 2):
        memory = sharded(ttnn.BufferType.L1, height, (cores - 1, 0), [32, 64])
        memory.experimental_set_per_core_allocation(True)
        held.append(tensor(mesh, [1, 1, 32 * cores, 64], memory))
        expected += chips * cores * 32 * 64 * 2
        equal(f"{cores} cores", "L1", l1(), expected)
        for device in ask("cores")["devices"]:
            unplaced = sum(one["live_count"] for one in device["unplaced"])
            equal(f"{cores} cores", "buffers on unknown cores", (device["exact"], unplaced), (False, len(held) - 2))
    while len(held) > 2:
        held.pop()
        gc.collect()
    expected -= chips * 18 * 32 * 64 * 2
    equal("freed", "L1", l1(), expected)
    truth.check("as before", buffers=False)
    # Of earlier versions not all that programs take is seen, and nothing is ever exact.
    if VERSION >= (0, 75):
        check_cores("as before", mesh, [])
    held.clear()
    gc.collect()
    equal("all freed", "L1", l1(), 0)
    ttnn.close_mesh_device(mesh)


def plain():
    """Allocates and frees, and compares nothing."""
    mesh = open_mesh()
    held = [tensor(mesh, [1, 1, 128, 256]) for _ in range(3)]
    del held
    ttnn.close_mesh_device(mesh)


def tell(command):
    """Lets tt-smi attach to this process or detach from it, and does not wait for that."""
    arguments = [SMI, command, "--yes", str(os.getpid())]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(arguments, env=ENVIRONMENT, text=True, **streams)


def attach(rounds):
    """tt-smi loads the tap into this process while all of its threads are busy, detaches and attaches again."""
    mesh = open_mesh()
    truth = Truth(mesh)
    held = [tensor(mesh, [1, 1, 128 * (1 + number), 256]) for number in range(7)]
    held += [tensor(mesh, [1, 1, 64, 64], ttnn.L1_MEMORY_CONFIG) for _ in range(3)]

    def work(rest):
        own, number = [], 0
        while not rest.is_set():
            number += 1
            own.append(tensor(mesh, [1, 1, 32 * (1 + number % 7), 64], memories[number % 2]))
            if len(own) > 5:
                ttnn.deallocate(own.pop(number % 5))
        kept.append(own)

    def under_load(command):
        """What tt-smi says; the main thread works as well, so that no thread waits for its sake."""
        rest = threading.Event()
        workers = [threading.Thread(target=work, args=(rest,)) for _ in range(3)]
        for worker in workers:
            worker.start()
        telling = tell(command)
        while telling.poll() is None:
            ttnn.deallocate(tensor(mesh, [1, 1, 256, 64]))
        rest.set()
        for worker in workers:
            worker.join()
        return telling.stdout.read().split(":")[0]

    def seen():
        return [one["pid"] for one in ask("snapshot")["processes"] if one["pid"] == os.getpid()]

    memories, kept = [ttnn.DRAM_MEMORY_CONFIG, ttnn.L1_MEMORY_CONFIG], []
    equal("before", "processes that report", seen(), [])
    for number in range(rounds + 1):
        step = f"round {number}"
        if number:
            equal(step, "answer", under_load("detach"), "Detached")
            equal(step, "processes that report", seen(), [])
            held[0] = tensor(mesh, [1, 1, 32 * (1 + number % 9), 32])
        equal(step, "answer", under_load("attach"), "Attached")
        held.append(tensor(mesh, [1, 1, 32, 32]))
        truth.check(f"{step}: attached")
        kept.clear()
        gc.collect()
        truth.check(f"{step}: freed what was allocated meanwhile")
        equal(step, "second answer", under_load("attach"), f"Process {os.getpid()} reports already")
        truth.check(f"{step}: attached twice")
        kept.clear()
    while held:
        held.pop(len(held) // 2)
        gc.collect()
        truth.check("freed one by one", buffers=len(held) < 3)
    truth.check("all freed")
    ttnn.close_mesh_device(mesh)


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


class Capture:
    """What tt-metal's own graph of a stretch of work says."""

    def __enter__(self):
        ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NORMAL)
        return self

    def __exit__(self, *_):
        self.regions, self.launches, self.operations, inside = collections.Counter(), collections.Counter(), {}, []
        self.on_cores = []
        for node in ttnn.graph.end_graph_capture():
            kind, said = node["node_type"], node["params"]
            if kind == "function_start":
                inside.append(said)
            elif kind == "function_end":
                inside.pop()
            elif kind == "buffer_allocate":
                names = [one["name"] for one in inside if one["name"].endswith("Operation")]
                self.operations[said["address"]] = names[-1] if names else None
            elif kind == "circular_buffer_allocate" and said["device_id"] == 0:
                in_a_buffer = said["globally_allocated"] == "1"
                cores_ = cores_in(said["core_range_set"])
                bytes_ = 0 if in_a_buffer else said["size"] * len(cores_)
                self.regions[said["address"], bytes_, in_a_buffer] += 1
                if not in_a_buffer:
                    self.on_cores.append((said["address"], said["size"], cores_))
            elif kind == "program_execution":
                self.launches[said["physical_device_id"], said["command_queue_id"], said["sub_device_id"]] += 1


def cores_in(ranges):
    """The cores of `{[0-0 - 7-7], [0-8 - 3-8]}`."""
    numbers = [[int(number) for number in one] for one in re.findall(r"(\d+)-(\d+) - (\d+)-(\d+)", ranges)]
    return {
        (x, y)
        for left, top, right, bottom in numbers
        for x in range(left, right + 1)
        for y in range(top, bottom + 1)
    }


def programs():
    """Circular buffers, kernels, launches and the names of operations, against tt-metal's own graph of the same work."""
    mesh = open_mesh()
    truth = Truth(mesh)
    layouts = ttnn.TensorMemoryLayout
    plain = [tensor(mesh, [1, 1, 256, 256]) for _ in range(2)]
    height = sharded(ttnn.BufferType.L1, layouts.HEIGHT_SHARDED, (7, 0), [32, 64])
    shards = tensor(mesh, [1, 1, 256, 64], height)

    def work():
        made = []
        for _ in range(3):
            made.append(ttnn.add(*plain))
            made.append(ttnn.relu(shards, memory_config=height))
        made.append(ttnn.matmul(*plain))
        made.append(ttnn.softmax(plain[0], dim=-1))
        made.append(ttnn.transpose(plain[0], -1, -2))
        made.append(tensor(mesh, [1, 1, 64, 64]))
        made.append(ttnn.exp(plain[1], memory_config=ttnn.L1_MEMORY_CONFIG))
        return made

    with Capture() as graph:
        held = work()
    truth.check("operations")
    chips = mesh.get_device_ids()
    indices = device_indices()
    listed = ask("allocations", "--pid", str(os.getpid()), "--device", str(indices[chips[0]]))["allocations"]
    circular = [one for one in listed if one["class"] == "cb" and one["name"] is None]
    shown = collections.Counter((one["address"], one["size_bytes"], one["globally_allocated"]) for one in circular)
    equal("operations", "circular buffers", shown, graph.regions)
    loaded = ask("programs", "--pid", str(os.getpid()))["programs"]
    equal("operations", "programs", len(loaded), mesh.num_program_cache_entries())
    equal("operations", "chips of programs", {tuple(one["devices"]) for one in loaded}, {tuple(sorted(indices.values()))})
    launches = sum(graph.launches.values())
    numbers = {index: chip for chip, index in indices.items()}
    shown = collections.Counter((numbers[one["device"]], one["queue"], one["lane"]) for one in events("KERNEL_DISPATCH"))
    # Earlier graphs do not tell.
    if graph.launches or VERSION >= (0, 81):
        equal("operations", "launches", sum(one["dispatches"] for one in loaded), launches)
        equal("operations", "launches of each chip", {chip for chip, _, _ in graph.launches}, set(chips))
        equal("operations", "queues and sub-devices", shown, graph.launches)
    equal("operations", "names of programs", all(one["name"].endswith("DeviceOperation") for one in loaded), True)
    equal("operations", "kernels", all(one["kernels"] and one["kernel_bytes"] for one in loaded), True)
    # While it makes a graph, tt-metal asks tensors more than an operation does, and names are not known.
    again = work()
    listed = ask("allocations", "--pid", str(os.getpid()), "--device", str(indices[chips[0]]))["allocations"]
    names = {one["address"]: one["name"] for one in listed if one["class"] in KINDS}
    for first, second in zip(held, again):
        operation = graph.operations[first.buffer_address()]
        equal("operations", f"name of what {operation} made", names[second.buffer_address()], operation)
    equal("operations", "tensors that no operation made", [names[one.buffer_address()] for one in plain], [None, None])
    held.clear()
    again.clear()
    del shards
    gc.collect()
    for work in (lambda: ttnn.matmul(*plain), lambda: ttnn.add(*plain)):
        clash(mesh, work)
    truth.check("circular buffers that did not fit")
    mesh.clear_program_cache()
    gc.collect()
    equal("without cached programs", "programs", ask("programs", "--pid", str(os.getpid()))["programs"], [])
    usage = mine()["devices"][0]
    equal("without cached programs", "circular buffers", usage["cb_allocated_bytes"], 0)
    equal("without cached programs", "kernels", usage["kernel_loaded_bytes"], 0)
    held.append(ttnn.add(*plain))
    ttnn.close_mesh_device(mesh)
    usage = mine()["devices"][0]
    equal("closed", "circular buffers", usage["cb_allocated_bytes"], 0)
    equal("closed", "misuse", mine()["anomalies"], {})


def gaps(taken, start, end):
    """Free bytes and the largest gap between ranges of addresses."""
    free = largest = 0
    for left, right in [*sorted(taken), (end, end)]:
        free += max(left - start, 0)
        largest = max(largest, left - start)
        start = max(start, right)
    return free, largest


def check_cores(step, mesh, on_cores):
    """The L1 of each core, against the allocator's views and lists, and what the last program has on each core; `None` if
    tt-metal does not say."""
    view, small = (ttnn.get_memory_view(mesh, KINDS[kind]) for kind in ("l1", "l1_small"))
    grid = mesh.compute_with_storage_grid_size()
    buffers = [one for one in ttnn._ttnn.reports.get_buffers(mesh) if one.buffer_type == ttnn.BufferType.L1]
    ranges = [(one.address, one.address + one.max_size_per_bank) for one in buffers]
    for shown in ask("cores")["devices"]:
        equal(step, "exact", (shown["exact"], shown["unplaced"]), (True, []))
        equal(step, "grid", (shown["grid_columns"], shown["grid_rows"]), (grid.x, grid.y))
        equal(step, "banks", (shown["core_count"], shown["l1_core_bytes"]), (view.num_banks, view.total_bytes_per_bank))
        equal(step, "L1_SMALL of a core", shown["l1_small_core_bytes"], small.total_bytes_per_bank)
        equal(step, "largest block", shown["largest_free_block_bytes"], view.largest_contiguous_bytes_free_per_bank)
        start = shown["l1_address"]
        end = start + view.total_bytes_per_bank
        free = []
        for core in shown["cores"]:
            place = core["x"], core["y"]
            buffers_ = (view.total_bytes_allocated_per_bank, small.total_bytes_allocated_per_bank)
            equal(step, f"buffers of core {place}", (core["l1_bytes"], core["l1_small_bytes"]), buffers_)
            if on_cores is None:
                continue
            here = [(address, bytes_) for address, bytes_, cores in on_cores if place in cores]
            taken = ranges + [(address, address + bytes_) for address, bytes_ in here]
            true = (sum(bytes_ for _, bytes_ in here), *gaps(taken, start, end))
            known = ("program_bytes", "free_bytes", "largest_gap_bytes")
            equal(step, f"core {place}", tuple(core[key] for key in known), true)
            if not here:
                allocator = (view.total_bytes_free_per_bank, view.largest_contiguous_bytes_free_per_bank)
                equal(step, f"what the allocator has on core {place}", true[1:], allocator)
            free.append((true[1], true[2], core["y"], core["x"]))
        keys = ("free_bytes", "largest_gap_bytes", "y", "x")
        if free:
            equal(step, "runs out first", tuple(shown["runs_out_first"][key] for key in keys), min(free))


def cores():
    """The L1 of each core, with buffers, and with the last of several programs on some cores and on all."""
    mesh = open_mesh()
    check_cores("open", mesh, [])
    held = [tensor(mesh, [1, 1, 32 * size, 256], ttnn.L1_MEMORY_CONFIG) for size in (4, 64, 2, 32)]
    layouts = ttnn.TensorMemoryLayout
    height = sharded(ttnn.BufferType.L1, layouts.HEIGHT_SHARDED, (3, 1), [32, 64])
    held.append(tensor(mesh, [1, 1, 256, 64], height))
    small = sharded(ttnn.BufferType.L1_SMALL, layouts.HEIGHT_SHARDED, (1, 0), [32, 32])
    held.append(tensor(mesh, [1, 1, 64, 32], small))
    check_cores("buffers", mesh, [])
    del held[1]
    gc.collect()
    check_cores("with a gap", mesh, [])
    plain = [tensor(mesh, [1, 1, size, size]) for size in (256, 256, 64, 64)]
    operations = {
        "matmul": lambda: ttnn.matmul(*plain[:2]),
        "few tiles": lambda: ttnn.add(*plain[2:]),
        "softmax": lambda: ttnn.softmax(plain[0], dim=-1),
        "shards": lambda: ttnn.relu(held[3], memory_config=height),
        "transpose": lambda: ttnn.transpose(plain[0], -1, -2),
    }
    compared = 0
    for step, operation in operations.items():
        mesh.clear_program_cache()
        with Capture() as graph:
            held.append(operation())
        # Graphs tell circular buffers only; operations that have dataflow buffers instead are compared without them.
        listed = ask("allocations", "--class", "cb")["allocations"]
        is_told = all(one["name"] is None for one in listed)
        check_cores(step, mesh, graph.on_cores if is_told else None)
        compared += is_told
    equal("operations", "compared with graphs", compared >= 2, True)
    mesh.clear_program_cache()
    gc.collect()
    check_cores("without programs", mesh, [])
    ttnn.close_mesh_device(mesh)


def sites():
    """Call sites, on request: the functions of ttnn that led to an allocation."""
    mesh = open_mesh()
    plain = [tensor(mesh, [1, 1, 256, 256]) for _ in range(2)]
    made = ttnn.add(*plain)
    listed = ask("allocations", "--pid", str(os.getpid()))["allocations"]
    shown = {one["address"]: one["site"] for one in listed}
    equal("an operation", "last function of its call site", shown[made.buffer_address()].split(" < ")[-1], "ttnn::add")
    equal("no operation", "whether its call site is one", "ttnn::" in shown[plain[0].buffer_address()], False)
    ttnn.close_mesh_device(mesh)


def mine():
    """What tt-smi shows of this process."""
    (process,) = (one for one in ask("snapshot")["processes"] if one["pid"] == os.getpid())
    return process


def device_indices():
    """tt-smi's numbers of the chips, by tt-metal's."""
    return {usage["logical_id"]: usage["index"] for usage in mine()["devices"]}


def events(kind):
    """What happened, of a kind."""
    asked = subprocess.run([SMI, "events", "--json", "--pid", str(os.getpid())], env=ENVIRONMENT, capture_output=True, text=True)
    listed = (json.loads(line) for line in asked.stdout.splitlines())
    return [one for one in listed if one.get("event") == kind]


def clash(mesh, work):
    """L1 is filled until the circular buffers of an operation do not fit below; tt-metal says where both end."""
    view = ttnn.get_memory_view(mesh, ttnn.BufferType.L1)
    tiles = view.largest_contiguous_bytes_free_per_bank // 2048 - 1
    wall = tensor(mesh, [1, 1, 32 * view.num_banks * tiles, 32], ttnn.L1_MEMORY_CONFIG)
    before = mine()["devices"][0]["failed_allocs"]
    said = refused(work)
    lowest, end = re.search(r"allocated at (\d+) and static \w+ buffer region ends at (\d+)", said.replace(",", "")).groups()
    equal("clash", "failures", mine()["devices"][0]["failed_allocs"] - before, 1)
    failure = ask("oom")["failures"][0]
    equal("clash", "class", failure["class"], "cb")
    missing = failure["needed_per_bank_bytes"] - failure["free_bytes"]
    equal("clash", "bytes that were missing on a core", missing, int(end) - int(lowest))
    del wall
    gc.collect()


def pair():
    """Two processes on one chip, of which one is killed."""
    mesh = open_mesh()
    truth = Truth(mesh)
    held = tensor(mesh, [1, 1, 512, 512])
    other, lines = holding([sys.executable, *sys.argv[:3], "hold"])
    theirs = int(next(lines)[1])
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
    print("holds", sum(kinds["dram"] for kinds in Truth(mesh).by_chip().values()), os.getpid(), flush=True)
    threading.Event().wait()
    del held


def holders(step, held):
    """Compares the DRAM of several processes, by pid."""
    shown = {
        one["pid"]: sum(usage["dram_used_bytes"] for usage in one["devices"]) for one in ask("snapshot")["processes"]
    }
    equal(step, "DRAM by process", {pid: shown.get(pid) for pid in held}, held)


def holding(command, **options):
    """Processes that were started by a command and hold something, by pid."""
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    lines = (line.split() for line in started.stdout if line.startswith("holds "))
    return started, lines


def child(ready, done):
    """A child of multiprocessing, which opens a device of its own."""
    mesh = open_mesh()
    held = tensor(mesh, [1, 1, 128, 512])
    ready.put((os.getpid(), sum(kinds["dram"] for kinds in Truth(mesh).by_chip().values())))
    done.wait()
    del held
    ttnn.close_mesh_device(mesh)


def children():
    """multiprocessing, with spawn and with fork: each child reports for itself."""
    for method in ("spawn", "fork"):
        context = multiprocessing.get_context(method)
        ready, done = context.Queue(), context.Event()
        started = [context.Process(target=child, args=(ready, done)) for _ in range(2)]
        for one in started:
            one.start()
        held = dict(ready.get(timeout=120) for _ in started)
        holders(method, held)
        equal(method, "children", set(held), {one.pid for one in started})
        done.set()
        for one in started:
            one.join()
            equal(method, "end of a child", one.exitcode, 0)
        equal(method, "processes that are left", [one["pid"] for one in ask("snapshot")["processes"]], [])


def workers():
    """A launcher of workers, as of torchrun: it only starts them, with their ranks, and passes its environment on."""
    command = [sys.executable, *sys.argv[:3], "hold"]
    started = [holding(command, env={**os.environ, "LOCAL_RANK": str(rank)}) for rank in range(3)]
    said = [next(lines) for _, lines in started]
    held = {int(pid): int(bytes_) for _, bytes_, pid in said}
    holders("workers", held)
    equal("workers", "pids", set(held), {one.pid for one, _ in started})
    for one, _ in started:
        one.terminate()
        one.wait()
    equal("workers", "processes that are left", ask("snapshot")["processes"], [])


def mpi():
    """A local mpirun, which passes the environment on."""
    root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    # tt-metal takes the ranks of one mpirun for hosts of one machine, which a mock machine does not have: each is alone.
    alone = (
        "import os, sys\nfor key in [*os.environ]:\n  if key.startswith(('OMPI', 'PMIX', 'PRTE')): del os.environ[key]\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    ranks = ["mpirun", *root, "--oversubscribe", "-n", "2"]
    started, lines = holding([*ranks, sys.executable, "-c", alone, *sys.argv[:3], "hold"])
    held = {int(pid): int(bytes_) for _, bytes_, pid in (next(lines), next(lines))}
    holders("mpirun", held)
    equal("mpirun", "processes", len(held), 2)
    started.terminate()
    started.wait()


def host():
    """A host in C++, eight threads of which allocate and free at once: what its allocator says when they rest."""
    command = [os.environ["HOST"], "threads", "8", "5000"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        for step in ("eight threads rest", "all freed"):
            said = next(line.split()[1:] for line in started.stdout if line.startswith("rests "))
            (shown,) = (one for one in ask("snapshot")["processes"] if one["pid"] == started.pid)
            (usage,) = shown["devices"]
            for kind, true in zip(("dram", "l1", "trace"), said):
                equal(step, kind, usage["classes"][kind]["live_bytes"], int(true))
            equal(step, "misuse", shown["anomalies"], {})
            equal(step, "checks that found a difference", shown["self_checks_different"], 0)
            equal(step, "checks by the tap", shown["self_checks"] > 100, True)
            started.stdin.write("\n")
            started.stdin.flush()
        equal("host", "end", started.wait(), 0)


def begun():
    """The tap comes while a thread is in the middle of a call, which it cannot see. That is found out and put right."""
    for what, when, freed in (
        ("allocate", "before", False),
        ("allocate", "before", True),
        ("allocate", "after", False),
        ("allocate", "after", True),
        ("free", "before", False),
        ("free", "after", False),
    ):
        environment = {**os.environ, "LD_PRELOAD": os.environ["HOLD"], **({"FREES_CAUGHT": "1"} if freed else {})}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
        with subprocess.Popen([os.environ["HOST"], "begun", what, when], **pipes) as started:
            for rest in ("on its way", "at its end", "later", "put right", "settled", "all freed"):
                step = f"{what}, held {when} it is done{', freed soon' * freed}: {rest}"
                said = next(line.split()[1:] for line in started.stdout if line.startswith("rests "))
                (shown,) = (one for one in ask("snapshot")["processes"] if one["pid"] == started.pid)
                (usage,) = shown["devices"]
                is_right, is_settled = rest in ("put right", "settled", "all freed"), rest in ("settled", "all freed")
                if is_settled or not is_right:
                    equal(step, "exact", usage["dram_used_exact"], is_settled)
                equal(step, "misuse", shown["anomalies"], {})
                equal(step, "checks that found a difference", shown["self_checks_different"], 0)
                if is_right:
                    for kind, true in zip(("dram", "l1", "trace"), said):
                        equal(step, kind, usage["classes"][kind]["live_bytes"], int(true))
                started.stdin.write("\n")
                started.stdin.flush()
            equal(f"{what}, held {when}", "end", started.wait(), 0)


def installs(rounds):
    """The tap comes while three threads allocate and free, again and again: when they rest, everything is known."""
    with subprocess.Popen(
        [os.environ["HOST"], "installs", "3", str(rounds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        for number in range(rounds + 1):
            said = next(line.split()[1:] for line in started.stdout if line.startswith("rests "))
            (shown,) = (one for one in ask("snapshot")["processes"] if one["pid"] == started.pid)
            (usage,) = shown["devices"]
            step = f"round {number}"
            for kind, true in zip(("dram", "l1", "trace"), said):
                equal(step, kind, usage["classes"][kind]["live_bytes"], int(true))
            equal(step, "misuse", shown["anomalies"], {})
            equal(step, "checks that found a difference", shown["self_checks_different"], 0)
            equal(step, "exact", usage["dram_used_exact"], number == rounds)
            started.stdin.write("\n")
            started.stdin.flush()
        equal("host", "end", started.wait(), 0)


def detached():
    """Reports end and begin anew while tensors live and operations run."""
    mesh = open_mesh()
    truth = Truth(mesh)
    tap = ctypes.CDLL(os.environ["TAP"])
    plain = [tensor(mesh, [1, 1, 256, 256]) for _ in range(2)]
    for turn in range(3):
        held = [ttnn.add(*plain)]
        truth.check(f"reported, turn {turn}")
        usage = mine()["devices"][0]
        # What a program from before takes of L1 is not known.
        equal(f"turn {turn}", "exact", usage["l1_used_exact"], turn == 0)
        equal(f"turn {turn}", "detach", tap.tt_shm_tap_detach(), 1)
        equal(f"turn {turn}", "detach again", tap.tt_shm_tap_detach(), 0)
        held.append(ttnn.matmul(*plain))
        held.append(tensor(mesh, [1, 1, 64, 64 * (1 + turn)]))
        equal(f"turn {turn}", "processes", [one["pid"] for one in ask("snapshot")["processes"]], [])
        equal(f"turn {turn}", "attach", tap.tt_shm_tap_install() > 0, True)
        held.append(tensor(mesh, [1, 1, 32, 32]))
        truth.check(f"reported again, turn {turn}")
        held.clear()
        gc.collect()
        truth.check(f"freed, turn {turn}")
    ttnn.close_mesh_device(mesh)


def itself(first=False):
    """A host that reports by itself, through the C library: the tap stands back, whichever of them comes first."""
    library = ctypes.CDLL(os.environ["CAPI"])

    def report():
        os.environ["TT_ALLOC_TRACKING_ENABLED"] = "1"
        tracker = ctypes.c_void_p()
        equal("itself", "open", library.tt_shm_tracker_for_process(ctypes.byref(tracker)), 0)

    if first:
        report()
    mesh = open_mesh()
    held = [tensor(mesh, [1, 1, 256, 256])]
    if not first:
        Truth(mesh).check("the tap reports")
        report()
    held.append(tensor(mesh, [1, 1, 64, 64]))
    sources = [one["source"] for one in ask("snapshot")["processes"] if one["pid"] == os.getpid()]
    equal("itself", "who reports", sources, ["ring"])
    listed = ask("allocations", "--pid", str(os.getpid()))["allocations"]
    equal("itself", "what the tap reports", listed, [])
    held.clear()
    ttnn.close_mesh_device(mesh)


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
    "unlisted": unlisted,
    "hybrid": hybrid,
    "plain": plain,
    "fork": forked,
    "threads": threads,
    "pair": pair,
    "programs": programs,
    "cores": cores,
    "sites": sites,
    "detached": detached,
    "children": children,
    "workers": workers,
    "mpi": mpi,
    "host": host,
    "begun": begun,
    "hold": hold,
    "itself": itself,
    "itself-first": lambda: itself(True),
}

if __name__ == "__main__":
    for scenario in sys.argv[3:]:
        name, _, number = scenario.partition("=")
        if name == "random":
            randomly(int(number))
        elif name == "attach":
            attach(int(number))
        elif name == "installs":
            installs(int(number))
        else:
            SCENARIOS[name]()
    print(f"{MACHINE}: {' '.join(sys.argv[3:])}: {comparisons} comparisons, {differences} different")
    sys.exit(differences != 0)
