"""Numbers of bytes as people write them."""

from __future__ import annotations

import re

_FACTORS = {
    "B": 1,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
    "TIB": 1 << 40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_PATTERN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_bytes(text: str | int) -> int:
    """The bytes of `"1.5 GiB"`, `"20 MB"`, `"0 B"` or a plain number."""
    if isinstance(text, int):
        return text
    match = _PATTERN.fullmatch(text)
    factor = _FACTORS.get((match.group(2) or "B").upper()) if match else None
    if match is None or factor is None:
        raise ValueError(f'{text!r} is no number of bytes: write it as "1.5 GiB", "20 MB" or "0 B"')
    return round(float(match.group(1)) * factor)


def format_bytes(count: int | None) -> str:
    """The same for people, `-` if it is not known."""
    if count is None:
        return "-"
    value, sign = float(abs(count)), "-" if count < 0 else ""
    if value < 1024:
        return f"{sign}{int(value)} B"
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024:
            return f"{sign}{value:.1f} {unit}"
    return f"{sign}{value / 1024:.1f} TiB"
