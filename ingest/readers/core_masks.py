"""How the core-group runtime encodes the cores of a task and the progress of a run."""

from __future__ import annotations

SHAPE_OF = {0: "DUMMY", 1: "AIC", 2: "AIV", 4: "AIV"}
"""Shape of a task whose mask is that; one of several bits is a MIX."""

STALL, TASKS_OVER, TASKS = "stall", "tasks over", "tasks in all"
"""The `counters` of a stalled step: the track, completed tasks, and all tasks."""
