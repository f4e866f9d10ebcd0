"""How the core-group runtime says on which cores of a group a task runs: a bit for each."""

from __future__ import annotations

SHAPE_OF = {0: "DUMMY", 1: "AIC", 2: "AIV", 4: "AIV"}
"""Shape of a task whose mask is that; one of several bits is a MIX."""
