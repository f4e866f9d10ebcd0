"""The page of the faults: what the reference engine can do wrong, and which rules are for that."""

from __future__ import annotations

from stepscope.engine.faults import FAULTS
from tests.matrix import FIRES

HEAD = """# Faults

Bugs of real schedulers that the [reference engine](../engine.md) has when it is told to, and the
rules that are made for each: `stepscope record SCENARIO --fault NAME`. `make matrix` runs every
fault against every rule.

| scenario | fault | what is wrong | rules |
|---|---|---|---|
"""


def faults_page() -> str:
    """Return the page: a row for each fault, in the order in which `record --list` names them."""
    rows = [
        f"| {fault.scenario} | {fault.name} | {fault.summary} | {_links(FIRES[fault.name])} |"
        for fault in FAULTS
    ]
    return HEAD + "\n".join([*rows, ""])


def _links(codes: tuple[str, ...]) -> str:
    return " ".join(f"[{code}](../rules/{code}.md)" for code in codes)
