"""The gallery shows all five reports, and what its sentences say is true of the recordings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Finding
from stepscope.engine.runs.scenario import Options
from stepscope.ingest.trace import Trace
from tests.app.web.in_browser.browser import ABSENT, chromium
from tests.conftest import ROOT
from tests.docs.gallery import (
    BY_SCENARIO,
    FRONT_ENDS,
    IMAGES,
    REPORTS,
    Report,
    main,
    take,
    write_reports,
)
from tests.docs.site import add_reports, broken, lay_out
from tests.docs.test_credited_figures import FIGURE, OF_SCENARIO, credited, missing
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.tiers import slow

PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
NUM_SENTENCES = 3
LARGEST_BYTES = 1_500_000
WEBP = b"WEBP"


def part(report: Report) -> str:
    """Return what the page has below the heading of a scenario."""
    return PAGE.partition(f"\n## {report.scenario}\n")[2].partition("\n## ")[0]


def sentences(report: Report) -> list[str]:
    """Return the lines of prose below the pictures."""
    prose = re.sub(r"```.*?```|<!--.*?-->", "", part(report), flags=re.DOTALL)
    return [line for line in prose.splitlines() if line and line[0] not in "![\n"]


@dataclass(frozen=True)
class Recordings:
    """Both variants of a report, and what the rules find in them."""

    before: Trace
    after: Trace
    found: CheckResult

    def finding(self, code: str) -> Finding:
        """Return the first finding of a rule in `before`."""
        return next(each for each in self.found.findings if each.code == code)


Figure = tuple[str, str] | Callable[[Recordings], object]
"""A variant and a query of it that gives one value, or what else a figure is computed from."""

FIGURES: dict[str, tuple[Figure, ...]] = {
    "mix-admission": (
        lambda runs: runs.found.counts["COR001"],
        lambda runs: runs.finding("COR001").group,
        ("before", "select round((max(s.ts_ns) - min(s.ts_ns)) / 1e3, 1) as us from core_spans s "
         "join tasks t on s.task = t.task "
         "where t.name = 'qk_pv L1 b0' and s.block = 1 and s.step = 2"),
        ("after", "select count(*) from decisions where verdict = 'admitted'"
         " and resource = 'core-group'"),
        ("after", "select min(available) from decisions where verdict = 'admitted'"
         " and resource = 'core-group'"),
        ("after", "select max(needed) from decisions where verdict = 'admitted'"
         " and resource = 'core-group'"),
    ),
    "mixed-batches": (
        lambda runs: runs.finding("STV011").evidence["steps"],
        lambda runs: runs.finding("STV011").evidence["ready to decode at most"],
        lambda runs: seconds(runs.finding("STV004").evidence["gap_ns"]),
        ("before", "select count(*) from steps where kind = 'mixed'"),
        ("after", "select count(*) from steps where kind = 'mixed'"),
        ("after", "select count(*) from steps"),
    ),
    "slot-recycling": (
        lambda runs: runs.finding("KVB006").count,
        lambda runs: copied(runs)[0] // 2**20,
        lambda runs: round(copied(runs)[0] / copied(runs)[1], 1),
        ("after", "select round(max(ts_ns + dur_ns) / 1e6) from steps"),
        ("before", "select round(max(ts_ns + dur_ns) / 1e6) from steps"),
    ),
    "ep-multiplexing": (
        ("before", "select max(num_running) from steps"),
        lambda runs: runs.found.counts["STV001"],
        ("before", "select min(max_tokens) from lifecycle"),
        ("before", "select max(max_tokens) from lifecycle"),
        lambda runs: min(seconds_late(runs)),
        lambda runs: max(seconds_late(runs)),
        ("before", "select round(min(ts_ns) / 1e9, 1) from lifecycle where event = 'finish'"),
        ("after", "select max(num_running) from steps"),
        ("after", "select round(min(ts_ns) / 1e9, 1) from lifecycle where event = 'finish'"),
    ),
    "fcfs-preemption": (
        ("before", "select count(*) from lifecycle where event = 'arrive'"),
        ("before", "select count(*) from lifecycle where event = 'finish'"),
        lambda runs: runs.found.counts["STV001"],
        ("before", "select round(max(ts_ns) / 1e9, 1) from lifecycle where event = 'abort'"),
        ("before", "select round(max(ts_ns) / 1e9, 1) from lifecycle where event = 'finish'"),
        ("after", "select count(*) from lifecycle where event = 'finish'"),
        ("after", "select round(max(ts_ns) / 1e9, 1) from lifecycle where event = 'finish'"),
        ("after", "select count(*) from decisions where verdict = 'preempted'"),
        ("before", "select count(*) from decisions where verdict = 'preempted'"),
    ),
}  # fmt: skip
"""What each figure of the sentences is in the recordings, in the order of the page."""


def value(figure: Figure, runs: Recordings) -> float:
    """Return what a figure is."""
    if isinstance(figure, tuple):
        variant, query = figure
        trace = runs.before if variant == "before" else runs.after
        return float(trace.sql(query).item())
    return float(str(figure(runs)))


def seconds(ns: object) -> float:
    """Return nanoseconds as seconds with one digit."""
    return round(int(str(ns)) / 1e9, 1)


def seconds_late(runs: Recordings) -> list[float]:
    """Return how long after their deadline the late requests finished."""
    late = [each.evidence for each in runs.found.findings if each.code == "STV001"]
    return [seconds(int(str(e["ended_ns"])) - int(str(e["deadline_ns"]))) for e in late]


def copied(runs: Recordings) -> tuple[int, int]:
    """Return the bytes of other slots that were copied, and those of the admitted slots."""
    evidence = runs.finding("KVB006").evidence
    return int(str(evidence["copied_bytes"])), int(str(evidence["own_bytes"]))


@pytest.fixture(scope="module")
def recordings(recorded_once: RecordedOnce) -> Callable[[Report], Recordings]:
    """Open both variants of a report, recorded with the settings that the page shows."""

    def opened(report: Report) -> Recordings:
        settings = dict(each.split("=") for each in report.settings)
        before, after = (
            recorded_once.trace(report.scenario, variant, Options(settings=settings))
            for variant in ("before", "after")
        )
        return Recordings(before, after, check(before))

    return opened


def test_the_command_knows_all_five_reports_by_the_numbers_that_they_have_everywhere() -> None:
    numbers = {report.scenario.replace("-", "_"): report.number for report in REPORTS}

    assert numbers == OF_SCENARIO
    assert main(["no-such-report"]) == 2


def test_the_page_has_a_part_for_each_report_and_for_nothing_else() -> None:
    assert re.findall(r"^## (.+)$", PAGE, flags=re.MULTILINE) == [*BY_SCENARIO]
    for report in REPORTS:
        assert part(report).startswith(f"\n[Report {report.number}](seeds.md#{report.number}-")


@looped("report", REPORTS, ids=lambda report: report.scenario)
def test_each_report_has_its_pictures_and_the_commands_that_make_what_they_show(
    report: Report,
) -> None:
    shown = re.findall(r"!\[.+?\]\(images/gallery/(.+?)\)", part(report))
    commands = re.findall(r"^stepscope (.+)$", part(report), flags=re.MULTILINE)

    assert shown == [
        picture.file(report.scenario, front_end)
        for picture in report.pictures
        for front_end in FRONT_ENDS
    ]
    assert commands == [" ".join(arguments) for arguments in report.commands]


def test_there_are_no_pictures_that_the_page_does_not_show_and_all_of_them_are_small() -> None:
    shown = set(re.findall(r"images/gallery/(\S+?)\)", PAGE))

    assert {path.name for path in IMAGES.iterdir()} == shown
    assert all(path.read_bytes()[8:12] == WEBP for path in IMAGES.iterdir())
    assert sum(path.stat().st_size for path in IMAGES.iterdir()) < LARGEST_BYTES


@looped("report", REPORTS, ids=lambda report: report.scenario)
def test_three_sentences_say_what_went_wrong_where_it_is_seen_and_what_the_fix_shows(
    report: Report,
) -> None:
    lines = sentences(report)

    assert len(lines) == NUM_SENTENCES
    assert all(line.endswith(".") and ". " not in line for line in lines)
    assert not any(missing(text, report.number) for line in lines for text in credited(line))


@slow
@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.scenario)
def test_every_figure_of_the_sentences_is_that_of_the_recordings(
    report: Report, recordings: Callable[[Report], Recordings]
) -> None:
    runs = recordings(report)

    assert written(sentences(report)) == [value(each, runs) for each in FIGURES[report.scenario]]


@slow
def test_requests_finish_in_the_order_of_their_arrival_after_the_repair(
    recordings: Callable[[Report], Recordings],
) -> None:
    after = recordings(BY_SCENARIO["fcfs-preemption"]).after
    by_arrival = after.sql(
        "select f.ts_ns from lifecycle f join lifecycle a on f.request = a.request "
        "where f.event = 'finish' and a.event = 'arrive' order by a.ts_ns, a.queue_index"
    )

    assert by_arrival["ts_ns"].is_sorted()


def written(lines: Iterable[str]) -> list[float]:
    """Return the figures of some prose; what is in code is a name."""
    prose = re.sub(r"`[^`]*`", "", " ".join(lines))
    return [float(found.replace(",", "").rstrip(".")) for found in FIGURE.findall(prose)]


def test_the_site_links_to_the_self_contained_pages_and_the_checkout_to_none(
    tmp_path: Path,
) -> None:
    reports = [tmp_path / f"{name}.html" for name in BY_SCENARIO]
    for page in reports:
        page.write_text(page.name)
    pages = tmp_path / "pages"
    lay_out(pages)
    assert broken(pages) == []
    assert "reports/" not in PAGE

    add_reports(pages, reports)

    gallery = (pages / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((reports/.+?)\)", gallery) == [f"reports/{p.name}" for p in reports]
    assert broken(pages) == []


@slow
def test_a_report_is_recorded_pictured_and_written_as_a_page_that_opens_without_network(
    tmp_path: Path,
) -> None:
    report = BY_SCENARIO["slot-recycling"]
    with chromium() as browser:
        if browser is None:
            pytest.skip(ABSENT)
        (page,) = write_reports(tmp_path, [report])
        take(browser, report, page.parent, tmp_path / "images")

        context = browser.new_context(offline=True)
        opened = context.new_page()
        requests: list[str] = []
        opened.on("request", lambda request: requests.append(request.url))
        opened.goto(page.as_uri(), wait_until="load")
        text = opened.inner_text("body")

    assert "KVB006" in text
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert {path.name for path in (tmp_path / "images").iterdir()} == {
        picture.file(report.scenario, front_end)
        for picture in report.pictures
        for front_end in FRONT_ENDS
    }
