"""Write docs/rules/ again, a page for each rule from its docstring: `make docs`.

The picture is drawn from the trace that proves the rule: that of its fault, where it has one. What
the reference engine cannot show is drawn from a small log of an engine, docs/rules/logs/CODE.log.
A picture is the same each time: a decoder that computes for real is timed by a clock that ticks.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from unittest.mock import patch

from stepscope.analyzers.check.explain import explain
from stepscope.analyzers.check.registry import RULES, by_family
from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.rule import Rule
from stepscope.app.timeline.drawing import drawing_of
from stepscope.app.timeline.model import Timeline
from stepscope.engine.clock import WallClock
from stepscope.engine.faults import FAULTS, Fault
from stepscope.engine.scenarios import Options, scenario
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.matrix import FIRES

PAGES = ROOT / "docs" / "rules"
PICTURES, LOGS = "pictures", "logs"

# What shows a rule that has no fault of its own: scenario, variant and settings.
SHOWN_BY: dict[str, tuple[str, str, Mapping[str, str]]] = {
    "COR001": ("mix-admission", "before", {}),
    "COR003": ("mix-admission", "before", {}),
    "COR005": ("mix-admission", "per-core-slot", {"workload": "mix-starvation"}),
    "COR006": ("mix-admission", "reserve-group", {}),
    "COR009": ("mix-admission", "after", {"groups": "24", "threads": "1"}),
    "STV001": ("fcfs-preemption", "before", {}),
    "BAT011": ("ep-multiplexing", "v2-grouped-gemm", {}),
    "KVB004": ("fcfs-preemption", "before", {}),
    "KVB006": ("slot-recycling", "before", {}),
}


def write(folder: Path) -> None:
    """Write an index, a page a rule, and the pictures into `folder`."""
    (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(index(), encoding="utf-8")
    for rule in RULES:
        svg = picture(rule)
        if svg:
            (folder / PICTURES / f"{rule.code}.svg").write_text(svg, encoding="utf-8")
        (folder / f"{rule.code}.md").write_text(page(rule), encoding="utf-8")


def index() -> str:
    """Return the page that lists all rules."""
    rows = [
        f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.severity} | {_summary(rule)} |"
        for rule in by_family(RULES)
    ]
    head = [
        "# Rules",
        "",
        "Made from the rules' docstrings by `make docs`; `stepscope explain CODE` shows the same.",
        "",
        "| code | name | severity | what is wrong |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


def page(rule: Rule) -> str:
    """Return the page of a rule: its docstring, the picture, and how the picture was made."""
    text = explain(rule.code)
    command = shown_by(rule)
    if command is None:
        return text
    head, heading, rest = text.partition("\n## Why it hurts")
    shown = f"![{rule.name}]({PICTURES}/{rule.code}.svg)\n\nFrom `{command}`.\n"
    return f"{head}\n{shown}{heading}{rest}"


def shown_by(rule: Rule) -> str | None:
    """Return the command that records what the picture shows."""
    if fault := fault_of(rule):
        return f"stepscope record {fault.scenario} --fault {fault.name}"
    if (log := log_of(rule)).exists():
        return f"stepscope check {log.relative_to(ROOT)}"
    if rule.code not in SHOWN_BY:
        return None
    name, variant, settings = SHOWN_BY[rule.code]
    sets = "".join(f" --set {key}={value}" for key, value in settings.items())
    return f"stepscope record {name} --variant {variant}{sets}"


def picture(rule: Rule) -> str | None:
    """Return the picture of the rule's worst finding, None for a rule that has no place."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "shown.trace"
        if run := run_of(rule):
            name, variant, options = run
            with patch("stepscope.engine.runs.torch_run.WallClock", ticking):
                scenario(name).record(variant, out, options)
        elif log_of(rule).exists():
            out = log_of(rule)
        else:
            return None
        return drawn(rule, Trace.open(out))


def run_of(rule: Rule) -> tuple[str, str, Options] | None:
    """Return scenario, variant and options of the run that shows the rule, if one does."""
    if fault := fault_of(rule):
        return fault.scenario, fault.variant, Options(faults=frozenset({fault.name}))
    if rule.code not in SHOWN_BY:
        return None
    name, variant, settings = SHOWN_BY[rule.code]
    return name, variant, Options(settings=settings)


def drawn(rule: Rule, trace: Trace) -> str:
    """Return the picture of the rule's worst finding in a trace."""
    return drawing_of(Timeline.of(trace), check(trace, (rule,)).findings[0]).svg()


def ticking() -> WallClock:
    """Return a clock on which a tenth of a millisecond passes whenever it is looked at."""
    ticks = count(0, 100_000)
    return WallClock(lambda: next(ticks), lambda _: None)


def log_of(rule: Rule) -> Path:
    """Return where a log of an engine shows the rule, if one does."""
    return PAGES / LOGS / f"{rule.code}.log"


def fault_of(rule: Rule) -> Fault | None:
    """Return the first fault that the rule is made for."""
    return next((each for each in FAULTS if rule.code in FIRES.get(each.name, ())), None)


def _summary(rule: Rule) -> str:
    docstring = sys.modules[type(rule).__module__].__doc__ or ""
    return docstring.partition("\n")[0].partition(": ")[2]


if __name__ == "__main__":
    write(PAGES)
