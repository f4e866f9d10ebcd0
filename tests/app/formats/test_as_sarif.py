"""Findings as SARIF: valid, within GitHub's limits, and the same from run to run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stepscope.app.formats import Checked, as_sarif
from tests.app.formats.findings import ASKED, CONFLICT, HOSTILE, NOTE, WASTE, checked, many
from tests.conftest import ROOT

SCHEMA = json.loads((ROOT / "tests" / "schemas" / "sarif-2.1.0.json").read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)


def log_of(*given: Checked) -> dict[str, Any]:
    """The log, after it was held against the schema."""
    log: dict[str, Any] = json.loads(as_sarif.render(given, ASKED).text)
    VALIDATOR.validate(log)
    return log


def results_of(*given: Checked) -> list[dict[str, Any]]:
    (run,) = log_of(*given)["runs"]
    results: list[dict[str, Any]] = run["results"]
    return results


def notes_of(*given: Checked) -> str:
    (invocation,) = log_of(*given)["runs"][0]["invocations"]
    notes = invocation["toolExecutionNotifications"]
    return "\n".join(note["message"]["text"] for note in notes)


def test_the_schema_tells_a_log_from_something_else() -> None:
    assert not VALIDATOR.is_valid({"version": "2.1.0", "runs": [{}]})
    assert not VALIDATOR.is_valid({"version": "2.1.0", "runs": [{"tool": {}, "results": []}]})


def test_a_log_of_nothing_is_valid() -> None:
    assert results_of(checked()) == []


def test_a_result_says_rule_level_message_place_and_how_often() -> None:
    (result,) = results_of(checked(WASTE))

    assert (result["ruleId"], result["level"]) == ("KVB003", "warning")
    assert result["message"]["text"].startswith("4 preemptions with room. Fix: ")
    assert result["occurrenceCount"] == 4
    assert result["properties"]["evidence"] == WASTE.evidence
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"].endswith("mix.trace")
    assert location["physicalLocation"]["region"] == {"startLine": 1}
    assert [(each["kind"], each["name"]) for each in location["logicalLocations"]] == [
        ("rank", "rank 0"), ("step", "step 3"), ("request", "request req-00"),
    ]  # fmt: skip


def test_every_rule_that_was_asked_is_there_with_its_page() -> None:
    log = log_of(checked(CONFLICT))

    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["COR001", "KVB003", "STV001", "TRC003"]
    assert [rule["defaultConfiguration"]["level"] for rule in rules] == [
        "error", "warning", "error", "note",
    ]  # fmt: skip
    assert "## How to fix" in rules[0]["help"]["markdown"]
    assert rules[0]["shortDescription"]["text"].startswith("a MIX block was admitted to")
    (result,) = log["runs"][0]["results"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


def test_the_worst_of_all_traces_comes_first_in_one_run() -> None:
    results = results_of(checked(NOTE, WASTE, trace="a"), checked(CONFLICT, trace="b"))

    assert [result["level"] for result in results] == ["error", "warning", "note"]


def test_what_github_would_not_show_is_cut_and_told() -> None:
    rendered = as_sarif.render([checked(*many(as_sarif.MOST_RESULTS + 300))], ASKED)

    log = json.loads(rendered.text)
    results = log["runs"][0]["results"]
    assert len(results) == as_sarif.MOST_RESULTS
    left_out = as_sarif.MOST_RESULTS + 300 - len(results)
    assert f"{left_out:,} of 5,300 findings left out" in rendered.notes[0]
    assert rendered.notes[0] in json.dumps(log["runs"][0]["invocations"])
    levels = [result["level"] for result in results]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)


def noise(num_bytes: int, seed: str | None) -> str:
    """Text that does not compress to much less than this many bytes."""
    return hashlib.shake_128(str(seed).encode()).hexdigest(num_bytes)


def test_what_github_would_not_take_is_cut_until_it_is_small_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(as_sarif, "MOST_GZIP_BYTES", 60_000)
    found = [replace(each, message=noise(700, each.request)) for each in many(200)]

    rendered = as_sarif.render([checked(*found)], ASKED)

    assert len(json.loads(rendered.text)["runs"][0]["results"]) == 50
    assert "150 of 200 findings left out" in rendered.notes[0]


def test_no_message_is_longer_than_a_reader_reads() -> None:
    (result,) = results_of(checked(replace(CONFLICT, message="x" * 1_000_000)))

    assert len(result["message"]["text"]) == as_sarif.MOST_MESSAGE_CHARS


def test_fingerprints_outlive_time_step_rank_and_numbers() -> None:
    later = replace(CONFLICT, ts_ns=9, end_ns=99, step=8, rank=3, message="7.1 µs", evidence={})

    (before,), (after,) = results_of(checked(CONFLICT)), results_of(checked(later))

    assert before["partialFingerprints"] == after["partialFingerprints"]


def test_two_findings_of_one_subject_stay_two_alerts() -> None:
    results = results_of(checked(CONFLICT, replace(CONFLICT, ts_ns=9)))

    lines = [each["partialFingerprints"]["primaryLocationLineHash"] for each in results]
    assert len(set(lines)) == 2


def test_a_trace_in_the_working_tree_is_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out" / "my run.trace").mkdir(parents=True)

    assert as_sarif.uri("out/my run.trace") == "out/my%20run.trace/manifest.json"
    assert as_sarif.uri(str(tmp_path / "x.json.gz")) == "x.json.gz"
    assert as_sarif.uri("/elsewhere/x.json") == "file:///elsewhere/x.json"
    assert as_sarif.uri("bad\udcff.json") == "bad%FF.json"


def test_what_was_not_judged_and_what_is_known_is_told() -> None:
    notes = notes_of(checked(num_known=12))

    assert "not applicable (not recorded): STV001" in notes
    assert "in the baseline, and left out: 12" in notes


def test_hostile_text_is_neither_link_nor_placeholder() -> None:
    result, _ = results_of(
        checked(replace(CONFLICT, message=HOSTILE), replace(WASTE, request=HOSTILE), trace=HOSTILE)
    )

    text = result["message"]["text"]
    assert "\n" not in text
    assert "\x1b" not in text
    assert "\\[x\\](https" in text
    assert "{{0}}" in text


@given(st.text(), st.text(), st.text())
@example("", "", "0" * 300)
def test_any_text_gives_a_valid_log(message: str, request: str, trace: str) -> None:
    found = replace(CONFLICT, message=message, request=request, evidence={message: request})

    assert len(results_of(checked(found, trace=trace.replace("\0", "") or "x"))) == 1
