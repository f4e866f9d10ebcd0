"""The pane of a mark's sums on the page: what an address means there, its links, its file."""

from __future__ import annotations

import csv
import io

from stepscope.app.present.spans.area_table import area_csv, area_table
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.area.selection import GROUPINGS, Pick
from stepscope.app.web.panes.area import area_pane, exported
from stepscope.app.web.resolve import resolve
from stepscope.app.web.view import View
from tests.app.timeline.profiles import kernel
from tests.app.web.small_traces import conflict_trace, loaded_of
from tests.traces import trace_of

LOADED = loaded_of(conflict_trace())
EVERY = f"?mark=0..{LOADED.length}&lanes=0-{len(LOADED.timeline.lanes) - 1}"


def test_an_address_spells_lanes_what_is_picked_and_colours_as_it_reads_them() -> None:
    view = View(mark=(3, 9), lanes=(0, 1, 2, 5), by="state", pick=Pick("name", "a:b,c"), path=1,
                colours="name")  # fmt: skip

    assert View.parse(view.spell()) == view
    assert "lanes=0-2,5" in view.spell()


def test_what_an_address_misspells_is_left_out() -> None:
    addresses = ("lanes=5-2", "lanes=x", "lanes=0-99999999999", "pick=name", "pick=up:x",
                 "by=size", "path=2", "colours=red")  # fmt: skip

    assert [text for text in addresses if View.parse(text) != View()] == []


def test_without_a_mark_the_pane_says_how_to_make_one() -> None:
    assert "shift and drag" in str(area_pane(LOADED, View()))
    assert exported(LOADED, "?tab=area") is None


def test_every_row_leads_to_its_spans() -> None:
    for by in GROUPINGS:
        resolved = resolve(LOADED, f"{EVERY}&by={by}")

        pane = str(area_pane(LOADED, resolved.view))

        table = area_table(LOADED.timeline.area(*LOADED.timeline.bounds, resolved.view.lanes),
                           LOADED.timeline, by)  # fmt: skip
        assert len(table.rows) == len(table.picks) > 0, by
        assert all(resolved.view.link(pick=pick) in pane for pick in table.picks), by
        picked = resolve(LOADED, f"{EVERY}&by={by}&{View(pick=table.picks[0]).spell()}")
        assert {why for *_, why in picked.as_props(LOADED)["outlines"]} == {"picked"}, by


def test_the_file_has_every_row_in_ns() -> None:
    made = exported(LOADED, f"{EVERY}&by=lane")

    assert made is not None
    rows = list(csv.DictReader(io.StringIO(made["content"])))
    sums = LOADED.timeline.area(*LOADED.timeline.bounds, range(len(LOADED.timeline.lanes)))
    assert [int(row["busy_ns"]) for row in rows] == sums.by_lane["busy_ns"].to_list()
    assert made["filename"].endswith("-area-by-lane.csv")


def test_text_of_a_trace_is_no_formula_and_no_control_in_a_file() -> None:
    names = ("=1+1", "+x", "-x", "@x", 'a"b', "a\nb", "\x1b[31mred")
    spans = [kernel(name, 10 * at, 5) for at, name in enumerate(names)]
    timeline = Timeline.of(trace_of(spans=spans))

    text = area_csv(timeline.area(*timeline.bounds, [0]), timeline, "name")

    cells = [row["name"] for row in csv.DictReader(io.StringIO(text))]
    assert len(cells) == len(names)
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))] == []
    assert "\x1b" not in text
    assert len(text.splitlines()) == 1 + len(names)


def test_a_long_name_is_picked_by_its_beginning() -> None:
    name = "k" * 30_000
    timeline = Timeline.of(trace_of(spans=[kernel(name, 0, 5)]))
    sums = timeline.area(0, 5, [0])

    (pick,) = area_table(sums, timeline, "name").picks

    assert len(pick.text) == 1_000
    assert len(sums.picked(pick.by, pick.text)) == 1
