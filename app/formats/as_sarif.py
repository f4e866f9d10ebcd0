"""Findings as SARIF 2.1.0, within what GitHub's code scanning accepts.

GitHub takes 25,000 results in a run and shows the worst 5,000, and takes 10 MB after gzip. What is
beyond that is cut here, the least severe first, and the run says so. All traces go into one run:
runs of one tool and category that are sent together are refused.

Source: GitHub, "SARIF support for code scanning" and "SARIF results exceed one or more limits".
"""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec

from stepscope.analyzers.check.explain import explain, summary
from stepscope.analyzers.check.registry import by_code
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.findings.fingerprint import fingerprint
from stepscope.app.formats import Asked, Checked, Rendered, Unread, clip, left_out, ranked
from stepscope.app.formats import sarif_log as sarif
from stepscope.app.own_version import installed_version
from stepscope.app.present.report_text import unmet_line
from stepscope.app.printable import plain

MOST_RESULTS = 5_000
MOST_GZIP_BYTES = 10_000_000
MOST_MESSAGE_CHARS = 2_000
MOST_NAME_CHARS = 200
LEVELS = {"error": "error", "warning": "warning", "info": "note"}
# What GitHub calls the severity of a rule that is not about security.
PROBLEMS = {"error": "error", "warning": "warning", "info": "recommendation"}
PLACES = ("rank", "step", "request", "task", "group", "core")


def render(checked: Sequence[Checked], asked: Asked) -> Rendered:
    """One log with one run, the worst finding first."""
    found = ranked(checked)
    num_shown = min(len(found), MOST_RESULTS)
    text = _log(checked, found[:num_shown], _notes(checked, num_shown, len(found)), asked.unread)
    while num_shown and _gzip_bytes(text) > MOST_GZIP_BYTES:
        num_shown //= 2
        notes = _notes(checked, num_shown, len(found))
        text = _log(checked, found[:num_shown], notes, asked.unread)
    return Rendered(text.decode(), tuple(_cut(num_shown, len(found))))


def _log(
    checked: Sequence[Checked], found: list[tuple[Checked, Finding]], notes: list[str],
    unread: Sequence[Unread],
) -> bytes:  # fmt: skip
    rules = sorted({code for each in checked for code in _codes(each)})
    places = [sarif.ArtifactLocation(uri(each.result.trace), i) for i, each in enumerate(checked)]
    missing = (*(each.said for each in unread), *_unmet(checked))
    unmet = [sarif.Notification("error", _told(each)) for each in missing]
    told = [*unmet, *(sarif.Notification("note", _told(note)) for note in notes)]
    driver = sarif.Driver("stepscope", [_rule(code) for code in rules], installed_version())
    run = sarif.Run(
        sarif.Tool(driver),
        [sarif.Invocation(execution_successful=not unmet, tool_execution_notifications=told)],
        [sarif.Artifact(place) for place in places],
        list(_results(checked, found, rules, places)),
    )
    return msgspec.json.encode(sarif.Log(runs=[run]))


def _codes(checked: Checked) -> list[str]:
    return [*checked.result.counts, *checked.result.not_applicable]


def _results(
    checked: Sequence[Checked],
    found: list[tuple[Checked, Finding]],
    rules: list[str],
    places: list[sarif.ArtifactLocation],
) -> Iterator[sarif.Result]:
    index_of = {id(each): index for index, each in enumerate(checked)}
    rule_of = {code: index for index, code in enumerate(rules)}
    seen: Counter[tuple[str, str]] = Counter()
    for each, finding in found:
        place, mark = places[index_of[id(each)]], fingerprint(finding)
        seen[place.uri, mark] += 1
        # GitHub takes two results with equal fingerprints in one file for one.
        prints = {"primaryLocationLineHash": f"{mark}:{seen[place.uri, mark]}",
                  "stepscope/v1": mark}  # fmt: skip
        yield sarif.Result(
            finding.code,
            rule_of[finding.code],
            LEVELS[finding.severity],
            sarif.Message(_message(f"{finding.message}. Fix: {finding.fix}")),
            [_location(finding, place)],
            prints,
            finding.count,
            _properties(finding),
        )


def _location(finding: Finding, place: sarif.ArtifactLocation) -> sarif.Location:
    named = [(kind, getattr(finding, kind)) for kind in PLACES]
    logical = [
        sarif.LogicalLocation(_name(f"{kind} {value}"), kind)
        for kind, value in named
        if value is not None
    ]
    return sarif.Location(sarif.PhysicalLocation(place, sarif.Region()), logical or None)


def _properties(finding: Finding) -> sarif.Properties:
    evidence = {
        _name(key): _name(value) if isinstance(value, str) else value
        for key, value in finding.evidence.items()
    }
    return {"ts_ns": finding.ts_ns, "end_ns": finding.end_ns, "evidence": evidence}


def _rule(code: str) -> sarif.Rule:
    rule, page = by_code(code), explain(code)
    what = sarif.Message(_escaped(summary(code)))
    severity = PROBLEMS[rule.severity]
    return sarif.Rule(
        rule.code,
        rule.name,
        what,
        what,
        sarif.Message(_escaped(page), page),
        sarif.Configuration(LEVELS[rule.severity]),
        {"tags": ["scheduling", rule.code[:3].lower()], "problem.severity": severity},
    )


def _notes(checked: Sequence[Checked], num_shown: int, num_found: int) -> list[str]:
    notes = _cut(num_shown, num_found)
    for each in checked:
        notes.append(f"{each.result.trace}: {each.result.coverage.share}")
        notes += [f"{each.result.trace}: {said}" for said in left_out(each)]
        if each.result.not_applicable:
            codes = ", ".join(each.result.not_applicable)
            notes.append(f"{each.result.trace}: not applicable (not recorded): {codes}")
    return notes


def _unmet(checked: Sequence[Checked]) -> Iterator[str]:
    """Why the run is no success, whatever it found: what should have been judged, and was not."""
    for each in checked:
        if verdict := each.result.coverage.verdict:
            yield f"{each.result.trace}: {verdict}"
        for code in each.unmet:
            yield f"{each.result.trace}: {code} {unmet_line(code, each.result)}"


def _cut(num_shown: int, num_found: int) -> list[str]:
    if num_shown == num_found:
        return []
    by_number = f"code scanning shows the worst {MOST_RESULTS:,}"
    by_size = f"code scanning takes {MOST_GZIP_BYTES // 10**6} MB"
    left = f"{num_found - num_shown:,} of {num_found:,} findings left out, the least severe"
    return [f"{left}: {by_number if num_shown == MOST_RESULTS else by_size}"]


def _gzip_bytes(text: bytes) -> int:
    """Bytes after compression; what is small enough as it is, is not compressed."""
    return len(text) if len(text) <= MOST_GZIP_BYTES else len(gzip.compress(text, 6))


def uri(trace: str) -> str:
    """Where a trace is; an alert needs a file, so a folder is shown by its manifest."""
    path = Path(trace)
    # A name too long for the system is no folder; Path.is_dir would raise.
    file = path / "manifest.json" if os.path.isdir(path) else path
    absolute = Path(os.path.abspath(file))
    if absolute.is_relative_to(Path.cwd()):
        return quote(os.fsencode(absolute.relative_to(Path.cwd()).as_posix()))
    return "file://" + quote(os.fsencode(absolute.as_posix()))


def _told(text: str) -> sarif.Message:
    return sarif.Message(_message(text))


def _message(text: str) -> str:
    return _escaped(clip(plain(text), MOST_MESSAGE_CHARS))


def _name(text: str) -> str:
    return clip(plain(text), MOST_NAME_CHARS)


def _escaped(text: str) -> str:
    """Text in which nothing is a placeholder or a link (SARIF 3.11.5 and 3.11.6)."""
    for char in "\\[]":
        text = text.replace(char, "\\" + char)
    return text.replace("{", "{{").replace("}", "}}")
