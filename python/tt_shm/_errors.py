"""Errors that only Python code raises."""

from __future__ import annotations

from ._tt_shm import Error


class InexactError(Error):
    """With `strict=True`: the figure is not known exactly, or not at all."""
