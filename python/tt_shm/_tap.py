"""The tap: a library that listens to tt-metal's allocator, loaded into this process.

There is one of it in a process, whoever loaded it: `LD_PRELOAD`, `tt-smi attach`, or `track()`.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from pathlib import Path

from ._tt_shm import Error

_PHASES = {"begin": 0, "end": 1, "instant": 2}
_NAME = re.compile(r"/libtt_shm_tap[^/]*\.so$")

_library: ctypes.CDLL | None = None

reports_by_itself: Callable[[], bool] = lambda: False
"""Whether a tracker of this process reports what tt-metal allocates; set by those who know."""


def path() -> Path:
    """The library inside this package."""
    return Path(__file__).with_name("libtt_shm_tap.so")


def _loaded_path() -> str | None:
    """The tap that is in this process already."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            names = (line.split(maxsplit=5)[5].rstrip("\n") for line in maps if "libtt_shm_tap" in line)
            # A library that was replaced by a newer one while it is in use.
            plain = (name.removesuffix(" (deleted)") for name in names)
            return next((name for name in plain if _NAME.search(name)), None)
    except OSError:
        return None


def _load(wanted: str | None) -> ctypes.CDLL:
    """The tap that is loaded, or else this one. Global: what tt-metal looks for later is found in it first."""
    global _library
    if _library is None:
        library = ctypes.CDLL(wanted or os.fspath(path()), mode=os.RTLD_GLOBAL | os.RTLD_NOW)
        library.tt_shm_tap_install.argtypes = []
        library.tt_shm_tap_detach.argtypes = []
        # Not in older ones, which `tt-smi attach` of an earlier version may have loaded.
        if hasattr(library, "tt_shm_tap_marker"):
            library.tt_shm_tap_reset_peaks.argtypes = [ctypes.c_int]
            library.tt_shm_tap_marker.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t]
        _library = library
    return _library


def _present() -> ctypes.CDLL | None:
    """The tap, if it is in this process."""
    if _library is not None:
        return _library
    loaded = _loaded_path()
    return _load(loaded) if loaded else None


def track(*, children: bool = False) -> bool:
    """Lets this process report what ttnn or tt-metal allocate, unmodified.

    May be called at any time: before or after `import ttnn`, before or after devices are opened, and again. If devices
    were open before, what they hold appears with the next allocation or free, and figures are exact as soon as the tap is
    sure that it has missed nothing, which takes a second. With `children`, processes that this one starts report, too (they
    inherit `LD_PRELOAD`); forked ones do in any case.

    A process in which a `Tracker` is open reports by itself, and nothing counts twice: this raises, unless the tracker was
    opened with `beside_tap=True`, for other memory than tt-metal's.

    Returns whether tt-metal is loaded by now.
    """
    if reports_by_itself():
        raise Error(
            "a tt_shm.Tracker is open, which reports by itself: close it, or open it with beside_tap=True if it reports "
            "other memory than tt-metal's"
        )
    loaded = _loaded_path()
    if loaded is None and not path().exists():
        raise Error(f"{path()} is missing: build the wheel with python/build, which puts it there")
    if children:
        preload(os.environ)
    hooks = _load(loaded).tt_shm_tap_install()
    # -1: not loaded. Then nothing has to be put in place, since this library comes first.
    if hooks < -1 or hooks == 0:
        raise Error(f"no hook could be put in place ({hooks}): libtt_metal.so is of an unknown kind")
    return bool(hooks > 0)


def untrack() -> bool:
    """Ends what `track()` began: the segment is removed. Returns whether anything was reported."""
    library = _present()
    return library is not None and library.tt_shm_tap_detach() == 1


def preload(environment: os._Environ[str] | dict[str, str]) -> None:
    """Puts the tap into `LD_PRELOAD`, unless one is there."""
    before = environment.get("LD_PRELOAD", "")
    if not any(_NAME.search("/" + part) for part in re.split(r"[ :]+", before)):
        environment["LD_PRELOAD"] = f"{path()}:{before}" if before else os.fspath(path())


def reset_peaks(device: int) -> bool:
    """Lets the peaks of a device begin anew; whether the tap could."""
    library = _present()
    if library is None or not hasattr(library, "tt_shm_tap_reset_peaks"):
        return False
    return bool(library.tt_shm_tap_reset_peaks(device) == 1)


def marker(phase: str, number: int, name: str) -> None:
    """Records a marker, if the tap reports anything."""
    if _library is None or not hasattr(_library, "tt_shm_tap_marker"):
        return
    encoded = name.encode()
    _library.tt_shm_tap_marker(_PHASES[phase], number & (2**64 - 1), encoded, len(encoded))
