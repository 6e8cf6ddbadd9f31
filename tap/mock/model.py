"""A small model on a mock machine, as a job to look at: weights in DRAM, activations in L1, a cache that grows.

    tt-smi run -- python model.py [SECONDS]
"""

import sys
import time
import types

import ttnn

sys.modules["torch"] = types.ModuleType("torch")
sys.modules["torch"].Tensor = type("Tensor", (), {})

SHAPE = (2, 4)
LAYERS, WIDTH, TOKENS = 6, 1024, 128


def tensor(mesh, shape, memory=ttnn.DRAM_MEMORY_CONFIG):
    return ttnn.allocate_tensor_on_device(ttnn.Shape(shape), ttnn.bfloat16, ttnn.TILE_LAYOUT, mesh, memory)


def layer(state, weights):
    """Attention and a feed-forward part, as far as memory is concerned. Returns the new state and what is cached."""
    l1 = ttnn.L1_MEMORY_CONFIG
    queries, keys, output, up, down = weights
    query = ttnn.matmul(state, queries, memory_config=l1)
    key = ttnn.matmul(state, keys)
    scores = ttnn.softmax(ttnn.matmul(query, ttnn.transpose(key, -1, -2)), dim=-1)
    attended = ttnn.matmul(ttnn.matmul(scores, key, memory_config=l1), output, memory_config=l1)
    state = ttnn.add(state, attended)
    hidden = ttnn.gelu(ttnn.matmul(state, up))
    return ttnn.add(state, ttnn.matmul(hidden, down)), key


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(*SHAPE), l1_small_size=32768)
    shapes = [[1, 1, WIDTH, WIDTH]] * 3 + [[1, 1, WIDTH, 4 * WIDTH], [1, 1, 4 * WIDTH, WIDTH]]
    model = [[tensor(mesh, shape) for shape in shapes] for _ in range(LAYERS)]
    cache, begin = [], time.monotonic()
    while True:
        state = tensor(mesh, [1, 1, TOKENS, WIDTH])
        for weights in model:
            state, key = layer(state, weights)
            cache.append(key)
        # The oldest tokens are forgotten.
        del cache[: -LAYERS * 16]
        if time.monotonic() - begin >= seconds:
            break
        time.sleep(0.05)
    ttnn.close_mesh_device(mesh)


main()
