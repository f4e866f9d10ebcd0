"""The sides of a state that can be printed: a line in a tuple makes one, with its help."""

from __future__ import annotations

from stepscope.app.debug.facets.look import Facet
from stepscope.app.debug.facets.of_cores import OF_CORES
from stepscope.app.debug.facets.of_memory import OF_MEMORY
from stepscope.app.debug.facets.of_requests import OF_REQUESTS
from stepscope.app.debug.facets.of_steps import OF_STEPS

FACETS: tuple[Facet, ...] = (*OF_REQUESTS, *OF_MEMORY, *OF_STEPS, *OF_CORES)
"""In the order in which `state` tells them."""
