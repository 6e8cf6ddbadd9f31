"""What the tap costs, beside tt-metal's own region: on the real allocator, all variants in turn, in one run.

    python bench.py HOST MACHINES

HOST is the C++ host, MACHINES the folder of mock machines; TAP names the tap. The figure of a variant is the fastest of
all its rounds, since other work on the machine only ever adds.
"""

import os
import subprocess
import sys

REGION_OFF = {"TT_METAL_SHM_TRACKING_DISABLED": "1"}
VARIANTS = {
    "plain (region off)": REGION_OFF,
    "with the tap": {**REGION_OFF, "LD_PRELOAD": os.environ["TAP"]},
    "with the region, as published": {},
    "with both": {"LD_PRELOAD": os.environ["TAP"]},
}
ROUNDS = 15

# Times are of pairs, each an allocation and its free, or of operations; the first ones compile.
OPERATIONS = """
import sys, time, types, ttnn
sys.modules["torch"] = types.ModuleType("torch")
sys.modules["torch"].Tensor = type("Tensor", (), {})
shape, work = tuple(int(part) for part in sys.argv[1].split("x")), sys.argv[2]
mesh = ttnn.open_mesh_device(ttnn.MeshShape(*shape))
make = lambda: ttnn.allocate_tensor_on_device(
    ttnn.Shape([1, 1, 64, 64]), ttnn.bfloat16, ttnn.TILE_LAYOUT, mesh, ttnn.DRAM_MEMORY_CONFIG)
one = make()
step = {"pair": make, "add": lambda: ttnn.add(one, one)}[work]
fastest = 1e99
for _ in range(12):
    begin = time.perf_counter_ns()
    for _ in range(500):
        step()
    fastest = min(fastest, (time.perf_counter_ns() - begin) / 500)
print(fastest)
ttnn.close_mesh_device(mesh)
"""


def measure(command, machine, variant):
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    description = os.path.join(sys.argv[2], f"{machine}.yaml")
    environment.update(VARIANTS[variant], TT_METAL_MOCK_CLUSTER_DESC_PATH=description)
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{command[0]}, {variant}: {ran.stderr}")
    return float(ran.stdout.split()[-1])


def fastest(command, machine):
    """The fastest time of each variant; they take turns."""
    times = {variant: [] for variant in VARIANTS}
    for _ in range(ROUNDS):
        for variant in VARIANTS:
            times[variant].append(measure(command, machine, variant))
    return {variant: min(each) for variant, each in times.items()}


def table(head, unit, times):
    plain = times["plain (region off)"]
    print(f"\n{head}\n\n| | {unit} | more than plain | |\n|---|---|---|---|")
    for variant, time in times.items():
        print(f"| {variant} | {time:,.0f} | {time - plain:,.0f} | {(time - plain) / plain:+.1%} |")


def main():
    host = [sys.argv[1], "pairs", "10", "5000"]
    pairs = fastest(host, "n150")
    table("An allocation and its free, C++ host, one chip", "ns", pairs)
    plain = pairs["plain (region off)"]
    tap, region = pairs["with the tap"] - plain, pairs["with the region, as published"] - plain
    print(f"\nThe tap adds {tap / region:.2f} of what the region adds (goal: at most 0.33).")
    add = fastest([sys.executable, "-c", OPERATIONS, "1x1", "add"], "n150")
    table("ttnn.add, one chip", "ns", add)
    share = add["with the tap"] / add["plain (region off)"] - 1
    print(f"\nThe tap adds {share:.1%} to ttnn.add (goal: at most 3 %).")
    meshes = {"1x1": "n150", "2x4": "t3k"}
    cost = {}
    for shape, machine in meshes.items():
        times = fastest([sys.executable, "-c", OPERATIONS, shape, "pair"], machine)
        table(f"A tensor made and dropped in Python, {shape} chips", "ns", times)
        cost[shape] = times["with the tap"] - times["plain (region off)"]
    print(f"\nEach further chip of a mesh adds {(cost['2x4'] - cost['1x1']) / 7:,.0f} ns to a pair.")


main()
