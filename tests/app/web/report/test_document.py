"""A report: one file that holds what was found, of which nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.report.document import LARGEST, document
from stepscope.ingest.trace import Trace
from tests.app.web.small_traces import conflict_trace, loaded_of
from tests.conftest import ROOT
from tests.tiers import slow
from tests.traces import trace_of


def quiet(_what: str, _done: int, _total: int | None) -> None:
    """Progress that nobody looks at."""


def report_of(*traces: LoadedTrace) -> str:
    return document(traces, quiet)


def hashes(made: str, directive: str) -> set[str]:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', made)
    assert policy
    named = next(part for part in policy[1].split("; ") if part.startswith(directive))
    return set(re.findall(r"'sha256-([^']+)'", named))


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_names_the_one_script_and_the_one_style_and_nothing_else() -> None:
    made = report_of(loaded_of(conflict_trace()))

    scripts = re.findall(r"<script type=\"module\">(.*?)</script>", made, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", made, re.DOTALL)
    assert hashes(made, "script-src") == {digest(each) for each in scripts}
    assert hashes(made, "style-src") == {digest(each) for each in styles}
    assert len(scripts) == len(styles) == 1
    assert "unsafe-inline" not in made
    assert " style=" not in made


@slow
def test_nothing_of_a_report_is_somewhere_else() -> None:
    made = report_of(loaded_of(conflict_trace()))

    leading = re.findall(r'(?:src|href|action)="([^"]*)"', made)
    assert [each for each in leading if not each.startswith(("#", "data:"))] == []
    assert "url(" not in made
    assert "@import" not in re.sub(r"/\*.*?\*/", "", made, flags=re.DOTALL)


def test_a_report_holds_each_finding_with_its_evidence_and_its_picture() -> None:
    loaded = loaded_of(conflict_trace())
    made = report_of(loaded)

    for key, found in loaded.findings.items():
        assert f'id="A-{key}"' in made
        assert found.fix.split(".")[0] in made
    assert "<h4>evidence</h4>" in made
    assert '<div class="picture"><svg' in made


@slow
def test_the_same_trace_gives_the_same_report() -> None:
    first, second = (report_of(loaded_of(conflict_trace())) for _ in range(2))

    assert first == second


def test_a_report_of_two_traces_says_where_they_diverge() -> None:
    samples = [
        ROOT / "sample_traces" / f"fcfs-preemption-{end}.trace" for end in ("before", "after")
    ]
    made = report_of(*(loaded_of(Trace.open(each)) for each in samples))

    assert "they diverge in step 3" in made
    assert 'id="A-STV001.1"' in made
    assert "Findings in B" in made
    assert "where they diverge</button>" in made
    latency = re.search(r"<td[^>]*>TTFT p50</td>(?:<td[^>]*>([^<]*)</td>){1}", made)
    assert latency
    assert latency[1] == "1.63 s"
    assert re.search(r"<td[^>]*>decode: number</td>.*?>74<.*?>198<.*?>\+124<", made)


def test_two_traces_that_are_the_same_have_no_divergence_to_go_to() -> None:
    made = report_of(*(loaded_of(conflict_trace()) for _ in range(2)))

    assert "they are the same in every step" in made
    assert "where they diverge</button>" not in made


def test_an_empty_trace_says_so_and_is_not_called_clean() -> None:
    made = report_of(loaded_of(trace_of(name="empty.trace")))

    assert "This trace has nothing that lies on a timeline." in made
    assert "Nothing was read: no table has a row" in made


def test_what_there_is_no_room_for_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.app.web.report.chapters.MOST_FINDINGS", 1)
    loaded = loaded_of(conflict_trace())
    assert len(loaded.findings) > 1

    made = report_of(loaded)

    assert f"{len(loaded.findings) - 1:,} more findings" in made


@slow
def test_names_of_a_million_letters_are_cut_and_the_report_stays_small() -> None:
    long = "n" * 1_000_000
    names = dict.fromkeys(
        ("request", "push", "mix", "counter", "reason", "trace", "scenario"), long
    )

    assert len(report_of(loaded_of(conflict_trace(**names)))) < LARGEST // 10
