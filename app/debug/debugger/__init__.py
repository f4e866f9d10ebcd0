"""A debugger over all ranks of a trace; places as they are written, and those with a name."""

from __future__ import annotations

from stepscope.app.debug.debugger.all_ranks import Debugger
from stepscope.app.debug.debugger.marks import state_folder

__all__ = ["Debugger", "state_folder"]
