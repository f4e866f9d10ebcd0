"""How the core-group runtime says on which cores a task runs, and how far a run came."""

from __future__ import annotations

SHAPE_OF = {0: "DUMMY", 1: "AIC", 2: "AIV", 4: "AIV"}
"""Shape of a task whose mask is that; one of several bits is a MIX."""

STALL, TASKS_OVER, TASKS = "stall", "tasks over", "tasks in all"
"""Of a step that stalled, in `counters`: the track, the tasks that were over, and all of them."""
