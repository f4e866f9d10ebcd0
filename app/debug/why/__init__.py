"""Why somebody waits: the chain from who waits to its root, each link with the row that proves it.

A chain is a function of a trace and a position alone. Whoever is named as a holder holds at that
position: that is worked out anew, and what was written down with a decision only says whom to ask
first.
"""

from __future__ import annotations

from stepscope.app.debug.why.chain import Chain, Link, Proof, Root
from stepscope.app.debug.why.evidence import Evidence
from stepscope.app.debug.why.not_in_step import why_not
from stepscope.app.debug.why.subjects import is_request
from stepscope.app.debug.why.walk import why

__all__ = ["Chain", "Evidence", "Link", "Proof", "Root", "is_request", "why", "why_not"]
