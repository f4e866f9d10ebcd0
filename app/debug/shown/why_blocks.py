"""Why somebody waits, as blocks: the dominant cause, then each link, which leads to its row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from stepscope.app.debug.debugger.why_anywhere import why_anywhere
from stepscope.app.debug.session import Session
from stepscope.app.debug.shown.site_source import in_short
from stepscope.app.debug.why import Chain, Proof
from stepscope.app.present.blocks import AtChange, Block, Fact, Paragraph, Tone
from stepscope.ingest.errors import ConfigError


def known_why(
    session: Session, subject: str, session_of: Callable[[int], Session] | None = None
) -> Chain | None:
    """Why somebody waits where a session stands, on whatever rank has him at that moment.

    None for whom the trace does not have. `session_of` gives the session of a rank, if there is one
    already.
    """
    sessions = session_of or partial(Session, session.trace)
    try:
        return why_anywhere(session, subject, session.position, sessions)
    except ConfigError:
        return None


def why_blocks(chain: Chain) -> Iterator[Block]:
    """A chain from its dominant cause down, each link with the place of the row that proves it.

    Below it stands in which functions of the policy that was decided, where the row says so.
    """
    first, *others = chain.lines()
    yield Paragraph(first)
    lines = others[: len(chain.links)]
    for number, (line, link) in enumerate(zip(lines, chain.links, strict=True), start=1):
        says = line.removeprefix(f"{number}. ")
        yield Fact(
            f"{number} {place_of(link.proof)}".rstrip(),
            (says,),
            to=target_of(link.proof, chain.elsewhere),
        )
        if link.site:
            yield Fact("decided in", (in_short(link.site),))
    if target := target_of(chain.root.proof, chain.elsewhere):
        yield Fact(f"root {place_of(chain.root.proof)}", (chain.root.says,), to=target)
    yield from (Paragraph(line, Tone.MUTED) for line in others[len(chain.links) :])


def place_of(proof: Proof | None) -> str:
    """Where a link leads, in short; empty where there is no row to go to."""
    if target_of(proof) is None or proof is None:
        return ""
    return f"→ #{proof.seq}" if proof.step is None else f"→ step {proof.step}"


def target_of(proof: Proof | None, rank: int | None = None) -> AtChange | None:
    """The row that proves a link as a place to go to; None without a place in the order.

    `rank` is whose row it is, where one stands at another.
    """
    return None if proof is None or proof.seq is None else AtChange(proof.seq, proof.step, rank)
