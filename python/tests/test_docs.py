"""The quick start of docs/embedding.md runs, and is short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "embedding.md"


def test_the_quick_start_runs() -> None:
    section = DOCUMENT.read_text().split("## Python", 1)[1]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    code = found.group(1)
    assert len(code.splitlines()) <= 15
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    total = 12 << 30
    assert done.stdout.splitlines() == [
        "12288 13440",
        "13440 True {'weights': 12288, 'activations': 1152}",
        f"({total - 12288}, {total})",
    ]
