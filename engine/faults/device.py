"""Bugs of `mix-admission`: of the dispatcher of core groups."""

from __future__ import annotations

from stepscope.engine.faults.fault import Fault

DEVICE = "mix-admission"

DEVICE_FAULTS = (
    Fault(
        "mix-shift-wrap",
        DEVICE,
        "MIX placement shifts by 64 bits: the 23rd group of a thread wraps to another group's AIV",
        settings={"groups": "24", "threads": "1"},
    ),
    Fault(
        "lost-ring-advance",
        DEVICE,
        "a ring moves on by the task that retired, and not past those that had retired before",
        settings={"task_slots": "64"},
    ),
    Fault(
        "stale-reservation",
        DEVICE,
        "an AIV-only dispatch shows itself only once MIX admission has looked",
    ),
    Fault(
        "pop-returns-consumed-slot",
        DEVICE,
        "a ready queue gives one slot to several threads: its block runs and counts more than once",
    ),
    Fault(
        "deferred-completion-lost",
        DEVICE,
        "of the tasks that a thread finds finished in one poll only the last one retires",
    ),
    Fault(
        "left-over-mix-ignored",
        DEVICE,
        "single-core work goes on in a pass in which a MIX is left over: no group is ever free",
    ),
    Fault(
        "predicate-of-the-one-before",
        DEVICE,
        "a task reads the predicate of the one before it: switched off, and told to have run",
    ),
    Fault(
        "sync-start-in-part",
        DEVICE,
        "an all-or-nothing task starts as many of its blocks as there is room for",
        settings={"workload": "mix-starvation"},
    ),
    Fault(
        "late-part-overwrites-tile",
        DEVICE,
        "a MIX is admitted on its AIC alone; nothing holds it back: its tile lands on a block's",
        settings={"late_part": "corrupts"},
    ),
    Fault(
        "late-part-hangs",
        DEVICE,
        "a MIX is admitted on its AIC alone; nothing holds it back: it waits for a tile for ever",
        settings={"late_part": "hangs"},
    ),
)
