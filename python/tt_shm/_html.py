"""Pictures for notebooks: bars as SVG inside of HTML, without anything to load."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from ._units import format_bytes

if TYPE_CHECKING:
    from ._step import Step, StepMemory
    from .stats import MemoryStats

_WIDTH = 420
_HEIGHT = 22
_COLORS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#edc948", "#9c755f")

Bar = tuple[str, int]


def _svg(parts: Sequence[Bar], total: int, mark: int | None = None) -> str:
    """A bar of parts of a total, with a mark at a peak."""
    total = max(total, sum(size for _, size in parts), mark or 0, 1)
    x, shapes = 0.0, []
    for index, (label, size) in enumerate(parts):
        width = size / total * _WIDTH
        title = escape(f"{label}: {format_bytes(size)}")
        color = _COLORS[index % len(_COLORS)]
        shapes.append(
            f'<rect x="{x:.1f}" y="2" width="{width:.1f}" height="{_HEIGHT - 4}" fill="{color}"><title>{title}</title></rect>'
        )
        x += width
    if mark is not None:
        at = min(mark / total * _WIDTH, _WIDTH - 1)
        shapes.append(
            f'<line x1="{at:.1f}" y1="0" x2="{at:.1f}" y2="{_HEIGHT}" stroke="#d62728" stroke-width="2">'
            f"<title>{escape('peak: ' + format_bytes(mark))}</title></line>"
        )
    frame = f'<rect x="0.5" y="1.5" width="{_WIDTH - 1}" height="{_HEIGHT - 3}" fill="none" stroke="#888"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" role="img">'
        f"{''.join(shapes)}{frame}</svg>"
    )


def _legend(parts: Sequence[Bar]) -> str:
    items = (
        f'<span style="color:{_COLORS[index % len(_COLORS)]}">&#9632;</span> {escape(label)} {format_bytes(size)}'
        for index, (label, size) in enumerate(parts)
    )
    return " &nbsp; ".join(items)


def stats(figures: MemoryStats) -> str:
    """What is occupied of a memory, by class, with its peak and its capacity."""
    if not figures:
        return "<div>tt_shm: nothing is known of this device</div>"
    current, peak = figures["allocated_bytes.all.current"], figures["allocated_bytes.all.peak"]
    names = [key.split(".")[1] for key in figures if key.startswith("allocated_bytes.") and key.endswith(".current")]
    parts = [(name, figures[f"allocated_bytes.{name}.current"]) for name in names if name != "all"]
    parts = [part for part in parts if part[1]]
    which = figures["device"] if figures["device"] is not None else hex(figures["chip_id"])
    exact = "" if figures.exact else "at least "
    text = f"device {which}, {figures['memory']}: {exact}{format_bytes(current)}, peak {exact}{format_bytes(peak)}"
    if figures.total is not None:
        text += f" of {format_bytes(figures.total)}"
    return f"<div><div>{escape(text)}</div>{_svg(parts, figures.total or 0, peak)}<div>{_legend(parts)}</div></div>"


def _level(level: StepMemory) -> str:
    parts = [(part.name or f"no name ({part.kind})", part.bytes) for part in level.parts or () if part.bytes]
    shown = parts[: len(_COLORS) - 1]
    rest = sum(size for _, size in parts[len(shown) :])
    if rest:
        shown.append(("others", rest))
    if not parts:
        shown = [("not known what", level.peak)] if level.peak else []
    which = level.device if level.device is not None else "-"
    exact = "" if level.exact else "at least "
    text = (
        f"device {which}, {level.memory}: peak {exact}{format_bytes(level.peak)}, "
        f"{format_bytes(level.begin)} at the beginning, {format_bytes(level.end)} at the end"
    )
    return f"<div>{escape(text)}</div>{_svg(shown, level.peak, None)}<div>{_legend(shown)}</div>"


def step(one: Step) -> str:
    """The peaks of a step and what they were made of."""
    levels = [level for level in one.devices if level.peak]
    body = "".join(_level(level) for level in levels) or "nothing is known"
    return f"<div><b>{escape(one.name)}</b>{body}</div>"
