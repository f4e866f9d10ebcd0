"""What a run with changes says: how far it is, and what came of it beside the recorded one.

It is worked out in the process that runs it, and read by the front that asked, so it is text.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from stepscope.app.replay.fidelity import Kind


@dataclass(frozen=True, slots=True)
class Figures:
    """A table of texts: what is counted, and how much of it there is in A and in B."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    num_more: int = 0


@dataclass(frozen=True, slots=True)
class Came:
    """A run with changes (B) beside the recorded one (A).

    `ran` says how it was run, `verdict` where the two diverge, first of all in `step` of `rank`
    (None where they do not), and `rows` what is different there. `figures` are the tables of
    `stepscope diff`, `who` who gained and who lost, `judged` what it says below its findings.
    """

    kind: Kind
    ran: tuple[str, ...]
    verdict: tuple[str, ...]
    rank: int | None
    step: int | None
    rows: tuple[str, ...]
    given: Figures | None
    totals: Figures
    causes: Figures | None
    who: tuple[tuple[str, tuple[str, ...]], ...]
    findings: Figures | None
    judged: tuple[str, ...]


class Said(msgspec.Struct, omit_defaults=True):
    """A line: how much is done of what, or what is wrong, or what came of it."""

    what: str = ""
    done: int = 0
    total: int | None = None
    failed: str = ""
    came: Came | None = None
