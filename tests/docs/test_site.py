"""The documentation is built as a site, strictly, and loads nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.site import BrokenSite, broken, build, lay_out, nav, unlisted
from tests.looped import looped
from tests.tiers import slow

_LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=[\"']?(?:https?:)?//[^\"' >]+")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it, which fails where a link leads nowhere."""
    return build(tmp_path_factory.mktemp("built"))


@slow
def test_the_readme_is_its_first_page_and_every_page_has_its_place(site: Path) -> None:
    assert "flight recorder" in (site / "index.html").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")]
    shown = [site / page.with_suffix(".html") for page in pages if page.name != "README.md"]
    assert [page for page in shown if not page.is_file()] == []


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}

    assert {
        page.name: found for page, text in pages.items() if (found := _LOADED.findall(text))
    } == {}
    assert "fonts.googleapis" not in "".join(pages.values())


@slow
@looped(
    "link",
    [
        "[x](docs/no-such-page.md)",
        "![x](docs/images/no.png)",
        "[x](docs)",
        "[x](docs/ci.md#no-part)",
    ],
)
def test_a_link_that_leads_nowhere_breaks_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    def with_a_broken_link(pages: Path) -> None:
        lay_out(pages)
        with (pages / "README.md").open("a", encoding="utf-8") as page:
            page.write(f"\n{link}\n")

    monkeypatch.setattr("tests.docs.site.lay_out", with_a_broken_link)

    with pytest.raises(BrokenSite, match="README"):
        build(tmp_path)


def test_what_only_looks_like_a_link_is_none(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`[x](nowhere)` [out](https://example.org)\n```\n[x](nowhere)\n```\n")

    assert broken(tmp_path) == []


def test_a_page_that_is_not_in_the_menu_is_told(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "new.md").write_text("# New\n")

    assert unlisted(tmp_path, nav()) == ["docs/new.md"]
