"""The machines that tt-metal is told it has: one file for each, as its mock mode reads them.

    python machines.py FOLDER

Ids are made up, and differ in every chip. Ethernet links are those of the real boards, as far as tt-metal needs them to
build a mesh.
"""

import sys
from pathlib import Path

WORMHOLE = dict(dram_harvesting_mask=0, eth_harvesting_mask=0, pcie_harvesting_mask=0)
BLACKHOLE = dict(dram_harvesting_mask=0, eth_harvesting_mask=288, pcie_harvesting_mask=2, l2cpu_harvesting_mask=0)


def links(one, other, channels):
    return [f"[{{chip: {one}, chan: {a}}}, {{chip: {other}, chan: {b}}}]" for a, b in channels]


def machine(arch, board, mask, boards, mmio, connections, places=()):
    chips = sorted(chip for chips in boards for chip in chips)
    harvesting = dict(noc_translation="true", harvest_mask=mask, **(WORMHOLE if arch == "wormhole_b0" else BLACKHOLE))
    harvesting = ", ".join(f"{key}: {value}" for key, value in harvesting.items())
    # The id of a board says what kind it is.
    first_board = {"n150": 0x100_0180_0000_0000, "n300": 0x100_0140_0000_0000, "p150": 0x401_0000_0000}[board]
    unique = {chip: 0x5EED_0000_0000 + 0x101 * chip + len(chips) for chip in chips}
    if arch == "blackhole":
        # There the id of a chip is made of its board's.
        unique = {chip: (first_board + chip) << 5 for chip in chips}
    return "\n".join(
        [
            "arch: {" + ", ".join(f"{chip}: {arch}" for chip in chips) + "}",
            "chips: {" + ", ".join(f"{chip}: [{x}, {y}, 0, 0]" for chip, (x, y) in places) + "}",
            "chip_unique_ids: {" + ", ".join(f"{chip}: {unique[chip]}" for chip in chips) + "}",
            "ethernet_connections: [" + ", ".join(connections) + "]",
            "chips_with_mmio: [" + ", ".join(f"{{{chip}: {chip}}}" for chip in mmio) + "]",
            "harvesting: {" + ", ".join(f"{chip}: {{{harvesting}}}" for chip in chips) + "}",
            "boards: ["
            + ", ".join(
                f"[{{board_id: {first_board + number}}}, "
                f"{{board_type: {board}}}, {{chips: {list(chips)}}}]"
                for number, chips in enumerate(boards)
            )
            + "]",
            "",
        ]
    )


def t3k():
    """Four boards of two chips, 2 x 4: the chips with a host link are in the middle columns."""
    places = {0: (1, 0), 1: (1, 1), 2: (2, 0), 3: (2, 1), 4: (0, 0), 5: (0, 1), 6: (3, 0), 7: (3, 1)}
    connections = [link for chip in range(4) for link in links(chip, chip + 4, [(8, 0), (9, 1)])]
    connections += links(0, 2, [(6, 6), (7, 7)]) + links(1, 3, [(0, 0), (1, 1)])
    connections += [link for chip in (0, 2) for link in links(chip, chip + 1, [(14, 14), (15, 15)])]
    connections += [link for chip in (4, 6) for link in links(chip, chip + 1, [(6, 6), (7, 7)])]
    boards = [(chip + 4, chip) for chip in range(4)]
    return machine("wormhole_b0", "n300", 64, boards, range(4), connections, sorted(places.items()))


def p150x8():
    """Eight boards of one chip: two rings of four, one above the other."""
    one_way, other_way, up = [(4, 7), (6, 5)], [(5, 6), (7, 4)], [(8, 11), (10, 9)]
    connections = [link for chip in range(4) for link in links(chip, chip + 4, up)]
    for ring in (0, 4):
        for chip, neighbour, wires in ((0, 1, one_way), (1, 3, one_way), (0, 2, other_way), (2, 3, other_way)):
            connections += links(ring + chip, ring + neighbour, wires)
    return machine("blackhole", "p150", 128, [(chip,) for chip in range(8)], range(8), connections)


MACHINES = {
    "n150": lambda: machine("wormhole_b0", "n150", 64, [(0,)], [0], [], [(0, (0, 0))]),
    "n300": lambda: machine(
        "wormhole_b0", "n300", 64, [(0, 1)], [0], links(0, 1, [(8, 0), (9, 1)]), [(0, (0, 0)), (1, (1, 0))]
    ),
    "t3k": t3k,
    "p150": lambda: machine("blackhole", "p150", 192, [(0,)], [0], []),
    "p150x8": p150x8,
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, describe in MACHINES.items():
        (folder / f"{name}.yaml").write_text(describe())
