"""Rules that may judge a part of a run: where they find something in it, the whole run has it too.

Older rows of a recording that is followed are left out, and later ones have yet to come. A rule
that takes what is not there for what never was would cry wolf; these do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analyzers.findings.rule import Rule

OF_A_PART = frozenset({
    "BAT001", "BAT002", "BAT003", "BAT004", "BAT005", "BAT006", "BAT007", "BAT008", "BAT009",
    "BAT010", "BAT011", "BAT013", "BUF001", "BUF002", "BUF003", "BUF004", "BUF005", "BUF006",
    "COL001", "COL005", "COL006", "COL008", "COL009", "COL010", "COR001", "COR002", "COR003",
    "COR004", "COR007", "COR008", "COR010", "COR011", "COR013", "EQV002", "EQV004", "KVB001",
    "KVB003", "KVB005", "KVB006", "STV001", "STV002", "STV004", "STV005", "STV006", "STV007",
    "STV008", "STV011", "STV012", "STV014", "STV018",
})  # fmt: skip
"""Each was seen to fire on parts of runs, and on none of a run on which it is silent: of each fault
and each variant of a scenario, cut at random (`tests/analyzers/check/test_on_a_part.py`)."""


def rules_of_a_part(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Those of some rules that may judge rows of which older and later ones are left out."""
    return tuple(rule for rule in rules if rule.code in OF_A_PART)
