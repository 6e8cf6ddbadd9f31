"""Runs a script, and lets it and all of its children report what ttnn allocates.

    python -m tt_shm [--summary] script.py [ARGUMENT ...]
    python -m tt_shm [--summary] -m module [ARGUMENT ...]

The tap is loaded into this process before the script runs, and put into LD_PRELOAD for the processes that it starts: the
interpreter is not started anew, so debuggers and profilers stay where they are. For jobs that are no Python scripts there is
`tt-smi run`.
"""

from __future__ import annotations

import atexit
import runpy
import sys
from pathlib import Path

from . import memory_summary, track

_USAGE = "usage: python -m tt_shm [--summary] (script.py | -m module) [argument ...]"


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["--summary"]:
        arguments = arguments[1:]
        # Before what the script itself leaves to the end, at which devices may be closed.
        atexit.register(lambda: print(memory_summary(), file=sys.stderr))
    is_module = arguments[:1] == ["-m"]
    if is_module:
        arguments = arguments[1:]
    if not arguments or (arguments[0].startswith("-") and not is_module):
        is_help = arguments[:1] in (["-h"], ["--help"])
        print(__doc__ if is_help else _USAGE, file=sys.stdout if is_help else sys.stderr)
        sys.exit(0 if is_help else 2)
    track(children=True)
    sys.argv = arguments
    if is_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        # In place of the folder that this module was started in.
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
