"""The source at a site is shown where it is what ran, and nothing but the package is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.debug.shown import site_source
from stepscope.app.debug.shown.site_source import at_hand, in_short, stack_text
from stepscope.engine.schedulers.bucketed import Bucketed
from tests.conftest import ROOT
from tests.engine.small_engines import request, serve
from tests.looped import looped


@pytest.fixture(scope="module")
def site() -> str:
    """Where a policy of ours lets somebody wait."""
    _, rows = serve([request("a", 8), request("b", 9)], Bucketed())
    return str(rows.tables["decisions"][0]["site"])


def test_a_site_of_this_version_is_found_with_the_lines_of_its_file(site: str) -> None:
    places, why_not = at_hand(site)

    assert why_not == ""
    assert [place.function for place in places] == ["schedule", "_admit"]
    for place in places:
        assert place.file == ROOT / "engine" / "schedulers" / "bucketed.py"
        assert "yield" in place.file.read_text().split("\n")[place.line - 1]
        assert dict(place.around())[place.line] in place.file.read_text()
    assert stack_text(places).startswith("engine/schedulers/bucketed.py: schedule:")
    assert in_short(site) == "schedule > _admit"


def test_source_that_was_changed_since_is_not_shown(site: str) -> None:
    recorded = site[:-9] + ("0" if site[-9] != "0" else "1") + site[-8:]

    assert at_hand(recorded) == (
        (), "the source that ran is not the one of this stepscope"
    )  # fmt: skip


def test_source_that_moved_within_its_file_is_shown_where_it_is_now(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (before, _), (now, _) = at_hand(site), _moved(site, tmp_path, monkeypatch)

    assert [place.line - 2 for place in now] == [place.line for place in before]
    assert [dict(each.around())[each.line] for each in now] == [
        dict(each.around())[each.line] for each in before
    ]


def _moved(site: str, package: Path, monkeypatch: pytest.MonkeyPatch) -> site_source.AtHand:
    file = package / "engine" / "schedulers" / "bucketed.py"
    file.parent.mkdir(parents=True)
    file.write_text("# one\n# two\n" + (ROOT / "engine" / "schedulers" / "bucketed.py").read_text())
    monkeypatch.setattr(site_source, "_PACKAGE", package)
    return at_hand(site)


@looped(
    ("text", "why_not"),
    [
        ("what an engine says", "it names no function of a file"),
        ("engine/sites.py: site_of+1", "it was recorded without its source"),
        ("/etc/hosts.py: a+1 [00000000]", "/etc/hosts.py is no file of this stepscope"),
        ("../stepscope/engine/sites.py: a+1 [00000000]", "is no file of this stepscope"),
        ("engine/../engine/sites.py: a+1 [00000000]", "is no file of this stepscope"),
        ("acme/policies.py: a+1 [00000000]", "acme/policies.py is no file of this stepscope"),
        ("engine/sites.py: gone+1 [00000000]", "the source that ran is not the one of this"),
    ],
)
def test_what_is_not_at_hand_says_why(text: str, why_not: str) -> None:
    places, said = at_hand(text)

    assert places == ()
    assert why_not in said


def test_a_line_that_its_function_does_not_have_is_not_shown(site: str) -> None:
    assert at_hand(site.replace("+3", "+300")).why_not == (
        "it names a line behind the end of a function"
    )
