"""Build the documentation as a site in out/site: part of `make docs`.

The pages keep the places that they have in the checkout, README.md as the first, so that one link
holds where the code is and on the site. What is built loads nothing from elsewhere.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from stepscope.analyzers.check.registry import FAMILIES
from tests.conftest import ROOT
from tests.docs.gallery import RECORDINGS, write_reports

DOCS = ROOT / "docs"
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
OUT = ROOT / "out"
FEATURES = (
    "navigation.tabs",
    "navigation.indexes",
    "navigation.top",
    "content.code.copy",
    "toc.follow",
)
EXTENSIONS = ("tables", "toc", "admonition", "pymdownx.highlight", "pymdownx.superfences")
_TARGET = re.compile(r"\]\(([^)#\s]+)|(?:src|href)=\"([^\"#]+)\"")
_REPORT = re.compile(r"^<!-- report: ([\w-]+) -->$", re.MULTILINE)
"""Where the gallery has the link to a self-contained page, on the site alone."""
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
Nav = list[dict[str, object]]


class BrokenSite(Exception):
    """A link leads nowhere, or the builder says what is wrong with a page."""


START = (
    "tutorial",
    "debug",
    "dap",
    "assistants",
    "attach-vllm",
    "attach",
    "follow",
    "fleet",
    "compare",
    "recorder",
    "replay",
    "ci",
    "opentelemetry",
    "formats",
)
QUESTIONS = (
    "why-is-my-request-waiting", "what-did-preemption-cost", "did-the-upgrade-change-my-schedule",
)  # fmt: skip


def nav() -> Nav:
    """What stands in the site's menu, and in which order."""
    return [
        {"Home": "README.md"},
        {"Start": [*map(_page, START)]},
        {"Questions": [*map(_page, QUESTIONS)]},
        {"Rules": [{"All rules": "docs/rules/README.md"}, *map(_family, FAMILIES)]},
        {"Reference": [_titled(page) for page in sorted((DOCS / "reference").glob("*.md"))]},
        {"How it works": [
            _page("architecture"), _page("engine"), _page("gallery"), _page("seeds"),
            _page("costs"),
            {"Decisions": [_titled(page) for page in sorted((DOCS / "decisions").glob("*.md"))]},
        ]},
        {"Project": [_page("glossary"), *(_titled(ROOT / name) for name in BESIDE)]},
    ]  # fmt: skip


def _page(name: str) -> dict[str, object]:
    return _titled(DOCS / f"{name}.md")


def _family(family: str) -> dict[str, object]:
    return {family: [_titled(page) for page in sorted((DOCS / "rules").glob(f"{family}*.md"))]}


def _titled(page: Path) -> dict[str, object]:
    title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return {title: page.relative_to(ROOT).as_posix()}


def config(pages: str, site: str) -> dict[str, object]:
    """What the builder is told, with folders beside the file; nothing from other hosts among it."""
    return {
        "site_name": "stepscope",
        "docs_dir": pages,
        "site_dir": site,
        "use_directory_urls": False,
        "theme": {"name": "material", "font": False, "features": [*FEATURES]},
        "extra": {"generator": False},
        "markdown_extensions": [*EXTENSIONS],
        "nav": nav(),
    }


def lay_out(pages: Path) -> None:
    """Copy what is shown, each to the place that it has in the checkout."""
    shutil.copytree(DOCS, pages / "docs")
    for name in ("README.md", "LICENSE", *BESIDE):
        shutil.copy(ROOT / name, pages / name)


def add_reports(pages: Path, reports: Sequence[Path]) -> None:
    """Put self-contained pages beside the gallery, which then links to each; `lay_out` was first.

    In the checkout there are none, as they are large, made from code, and one command away.
    """
    folder = pages / "docs" / "reports"
    folder.mkdir()
    for report in reports:
        shutil.copy(report, folder)
    gallery = pages / "docs" / "gallery.md"
    text = gallery.read_text(encoding="utf-8")
    link = (
        r"[Open both recordings, before and after](reports/\1.html): one page that needs no server."
    )
    gallery.write_text(_REPORT.sub(link, text), encoding="utf-8")


def broken(pages: Path) -> list[str]:
    """Links and pictures of the pages that lead to no file, as `page: target`."""
    found = []
    for page in sorted(pages.rglob("*.md")):
        prose = _CODE.sub("", page.read_text(encoding="utf-8"))
        targets = (one or other for one, other in _TARGET.findall(prose))
        found += [
            f"{page.relative_to(pages)}: {target}"
            for target in targets
            if ":" not in target and not (page.parent / target).is_file()
        ]
    return found


def unlisted(pages: Path, menu: Nav) -> list[str]:
    """Pages that stand nowhere in the menu."""
    listed = json.dumps(menu)
    names = (page.relative_to(pages).as_posix() for page in sorted(pages.rglob("*.md")))
    return [name for name in names if f'"{name}"' not in listed]


def build(out: Path, reports: Sequence[Path] = ()) -> Path:
    """Build the site below `out`; raises BrokenSite with all that is wrong.

    Without `reports` the gallery has no links to self-contained pages.
    """
    pages, site = out / "pages", out / "site"
    for folder in (pages, site):
        shutil.rmtree(folder, ignore_errors=True)
    lay_out(pages)
    if reports:
        add_reports(pages, reports)
    _refuse("leads nowhere", broken(pages))
    _refuse("is not in the menu", unlisted(pages, nav()))
    told = out / "mkdocs.yml"
    told.write_text(json.dumps(config(pages.name, site.name)), encoding="utf-8")  # JSON is YAML
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(told)],
        cwd=out, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise BrokenSite(re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr))
    return site


def _refuse(why: str, found: Iterable[str]) -> None:
    if lines := [f"{each} {why}" for each in found]:
        raise BrokenSite("\n".join(lines))


if __name__ == "__main__":
    try:
        site = build(OUT, write_reports(RECORDINGS))
        sys.stdout.write(f"built {site.relative_to(ROOT)}/index.html\n")
    except BrokenSite as error:
        sys.exit(str(error))
