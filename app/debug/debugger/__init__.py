"""A debugger over all ranks of a trace; places as they are written, and those with a name."""

from __future__ import annotations

from stepscope.app.debug.debugger.all_ranks import Debugger

__all__ = ["Debugger"]
