"""Time travel through a trace, without a screen."""

from __future__ import annotations

from stepscope.app.debug.batch_members import batch_heading, left_out_heading
from stepscope.app.debug.changes import Change, changes_between
from stepscope.app.debug.detail import StepDetail
from stepscope.app.debug.engine_state import BatchEntry, CoreSlots, State, cores_line
from stepscope.app.debug.moments import Moments, Position
from stepscope.app.debug.names import Names
from stepscope.app.debug.reasons import LeftOut
from stepscope.app.debug.session import Session

__all__ = [
    "BatchEntry",
    "Change",
    "CoreSlots",
    "LeftOut",
    "Moments",
    "Names",
    "Position",
    "Session",
    "State",
    "StepDetail",
    "batch_heading",
    "changes_between",
    "cores_line",
    "left_out_heading",
]
