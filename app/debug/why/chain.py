"""What an answer is made of: links, each proved by a row, and the root in which they end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from stepscope.app.debug.moments import Position

Kind = Literal["request", "task", "core", "rank"]
Ends = Literal[
    "policy", "running until", "another rank", "leak", "silent", "wait cycle", "not recorded",
    "not waiting",
]  # fmt: skip


class Subject(NamedTuple):
    """Who is asked about: a request by its id, a task, a core or a rank by its number."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return self.name if self.kind == "request" else f"{self.kind} {self.name}"


class Proof(NamedTuple):
    """A row of the trace: its table, and where in it; what is not known of it is None."""

    table: str
    step: int | None
    ts_ns: int
    seq: int | None = None

    def __str__(self) -> str:
        place = [] if self.step is None else [f"step {self.step}"]
        return ", ".join([self.table, *place, *([] if self.seq is None else [f"#{self.seq}"])])


@dataclass(frozen=True, slots=True)
class Link:
    """One hop: who waits, for how much of what, and who holds it at the position of the chain.

    `num_holders` counts all who hold any of it then, `holder` among them; `recorded_holder` is whom
    the row names where that one holds none of it any more. `position` is where the row is told,
    `site` where in the policy's source it was decided.
    """

    subject: Subject
    says: str
    position: Position
    proof: Proof | None = None
    resource: str | None = None
    needed: int | None = None
    available: int | None = None
    holder: Subject | None = None
    num_holders: int | None = None
    recorded_holder: str | None = None
    site: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The link in plain values; what is not known is None."""
        return {
            "subject": str(self.subject),
            "says": self.says,
            "resource": self.resource,
            "needed": self.needed,
            "available": self.available,
            "holder": None if self.holder is None else str(self.holder),
            "num_holders": self.num_holders,
            "recorded_holder": self.recorded_holder,
            "site": self.site,
            "proof": None if self.proof is None else self.proof._asdict(),
            "position": self.position._asdict(),
        }


class Root(NamedTuple):
    """Where a chain ends: how, who is there, the cause in a clause, and what would change it."""

    ends: Ends
    subject: Subject
    says: str
    would_change: str
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """Why `subject` waits at `at`: the links in order, and the root that they end in.

    `asked_at` is the rank at which that was asked, where that has nobody of the name and the rank
    of `at` has; `num_ranks` have one then. `partial` says what the recording lacks, so that another
    answer might be right.
    """

    subject: Subject
    at: Position
    links: tuple[Link, ...]
    root: Root
    asked_at: int | None = None
    num_ranks: int = 1
    partial: tuple[str, ...] = ()

    @property
    def elsewhere(self) -> int | None:
        """The rank that has who is asked about, where that is not the one at which one asked."""
        return None if self.asked_at is None else self.at.rank

    @property
    def whose(self) -> str:
        """Whose it is, where another rank was asked: ` of rank 1, as rank 0 has none such`."""
        if self.asked_at is None:
            return ""
        more = f" and of {self.num_ranks - 1:,} more" if self.num_ranks > 1 else ""
        return f" of rank {self.at.rank}{more}, as rank {self.asked_at} has none such"

    @property
    def first_line(self) -> str:
        """The dominant cause, its evidence, and what would change it."""
        evidence = f" ({self.root.proof})" if self.root.proof else ""
        change = f"; {self.root.would_change}" if self.root.would_change else ""
        return f"{self.subject}{self.whose}: {self.root.ends}: {self.root.says}{evidence}{change}"

    def lines(self) -> Iterator[str]:
        """The answer as text: the dominant cause, then a line for each link."""
        yield self.first_line
        for number, link in enumerate(self.links, start=1):
            yield f"{number}. {link.says}{_amounts(link)}{f' ({link.proof})' if link.proof else ''}"
        yield from (f"partial: {line}" for line in self.partial)

    def as_dict(self) -> dict[str, Any]:
        """The answer in plain values, for programs."""
        return {
            "subject": str(self.subject),
            "kind": self.subject.kind,
            "at": self.at._asdict(),
            "asked_at": self.asked_at,
            "first_line": self.first_line,
            "root": {
                "ends": self.root.ends,
                "subject": str(self.root.subject),
                "says": self.root.says,
                "would_change": self.root.would_change,
                "proof": None if self.root.proof is None else self.root.proof._asdict(),
            },
            "links": [link.as_dict() for link in self.links],
            "partial": list(self.partial),
        }


def _amounts(link: Link) -> str:
    amounts = [
        f"{name} {value:,}"
        for name, value in (("needs", link.needed), ("free", link.available))
        if value is not None
    ]
    if link.holder is not None and link.num_holders is not None and link.num_holders > 1:
        amounts.append(f"{link.holder} and {link.num_holders - 1:,} more hold it")
    elif link.holder is not None:
        amounts.append(f"held by {link.holder}")
    if link.recorded_holder:
        amounts.append(f"the row names {link.recorded_holder}, which holds none by now")
    return f": {', '.join(amounts)}" if amounts else ""
