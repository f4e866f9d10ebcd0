"""The page's scripts: modules that are fetched as they are, checked by tools beside them."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.app.timeline import Viewport
from stepscope.app.timeline.viewport import MIN_SPAN_NS, PAN, WHEEL, ZOOM
from stepscope.app.web.server import create_app
from tests.app.web.small_traces import conflict_trace
from tests.conftest import ROOT
from tests.tiers import slow

ASSETS = ROOT / "app" / "web" / "assets"
CHECKS = ROOT / "tests" / "app" / "web" / "scripts"
MODULES = sorted(ASSETS.glob("*.js"))
LENGTH_NS = 10_000_000


def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed: the scripts' own tests did not run")
    return found


def tool(name: str) -> str:
    node()
    found = CHECKS / "node_modules" / ".bin" / name
    if not found.exists():
        pytest.skip(f"{name} is not installed: make check installs it by npm")
    return str(found)


def ran(*command: str, given: str = "") -> str:
    """What a command printed, which has to go well."""
    run = subprocess.run(
        command, cwd=ROOT, input=given, capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def imported(module: Path) -> list[str]:
    return re.findall(r'^import .*? from "\./([\w.]+)";$', module.read_text("utf-8"), re.MULTILINE)


def moved(draw: random.Random) -> dict[str, object]:
    """A range in a trace that begins at 0, and where the server's viewport goes from it."""
    bounds = (0, LENGTH_NS)
    t0 = draw.randrange(LENGTH_NS - MIN_SPAN_NS)
    view = Viewport(t0, draw.randint(t0 + MIN_SPAN_NS, LENGTH_NS))
    zoom, pan = draw.choice([ZOOM, 1 / ZOOM, WHEEL, 40.0, 0.01]), draw.choice([PAN, -PAN, 3, -3])
    at = draw.randint(view.t0, view.t1)
    zoomed, panned = view.zoom(zoom, at).clamp(bounds), view.pan(pan).clamp(bounds)
    return {
        "range": [view.t0, view.t1], "zoom": zoom, "at": at, "pan": pan,
        "zoomed": [zoomed.t0, zoomed.t1], "panned": [panned.t0, panned.t1],
    }  # fmt: skip


def test_ranges_on_the_page_move_as_those_of_the_server_do() -> None:
    draw = random.Random(1)
    factors = {"zoom": ZOOM, "pan": PAN, "wheel": WHEEL, "min_span": MIN_SPAN_NS}
    vectors = {"factors": factors, "length": LENGTH_NS, "moves": [moved(draw) for _ in range(500)]}

    ran(node(), str(CHECKS / "range.test.js"), given=json.dumps(vectors))


def test_rows_pictures_and_times_are_laid_out_as_they_should() -> None:
    ran(node(), str(CHECKS / "layout.test.js"))


@slow
def test_the_types_of_the_scripts_hold() -> None:
    ran(tool("tsc"), "--project", str(CHECKS))


@slow
def test_the_scripts_have_no_fault_that_a_linter_finds() -> None:
    ran(tool("eslint"), "--config", str(CHECKS / "eslint.config.js"), "app/web/assets",
        "app/web/report/assets", "app/web/start/assets")  # fmt: skip


def test_all_scripts_but_that_of_the_types_are_reached_from_the_page_s_own() -> None:
    reached, left = set(), ["page.js"]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += imported(ASSETS / name)

    assert reached == {module.name for module in MODULES} - {"types.js"}


def test_no_script_leaves_a_name_in_the_window() -> None:
    assert [each.name for each in MODULES if "window." in each.read_text("utf-8")] == []


def test_the_page_loads_one_module_and_dash_loads_none_as_a_classic_script() -> None:
    shown = create_app(conflict_trace(), check(conflict_trace())).server.test_client().get("/").text

    assert re.findall(r'<script type="module" src="([^"]+)">', shown) == ["/assets/page.js"]
    assert [src for src in re.findall(r'<script src="([^"]+)"', shown) if "assets" in src] == []


def test_a_browser_asks_again_whether_a_module_has_changed() -> None:
    client = create_app(conflict_trace(), check(conflict_trace())).server.test_client()

    for module in MODULES:
        with client.get(f"/assets/{module.name}") as first:
            known = {"If-None-Match": first.headers["ETag"]}
            assert first.headers["Cache-Control"] == "no-cache"
            assert "javascript" in first.headers["Content-Type"]
        with client.get(f"/assets/{module.name}", headers=known) as again:
            assert again.status_code == 304
