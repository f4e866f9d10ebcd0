"""A question over a recorded trace: the tools that a good answer needs, and what they have to say.

What is true was written down without them: `known` is a query over the plain tables, whose value is
`fact`, or says where else the fact is from. A trap asks for what the trace does not hold: its
`known` counts the rows or values that would tell, which are none, and the tools have to say that it
is not recorded, and nothing that could be taken for an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Question:
    """What is asked of which trace, with which calls; `says` is in what comes back, `{}` the fact.

    `lacks` is what a trap has to be told is not recorded, and `never` what it must not be told.
    """

    asks: str
    trace: str
    calls: tuple[Call, ...]
    known: str
    fact: Any = 0
    says: tuple[str, ...] = ()
    lacks: str = ""
    never: tuple[str, ...] = ()

    @property
    def is_trap(self) -> bool:
        """Whether the trace does not hold the answer."""
        return bool(self.lacks)
