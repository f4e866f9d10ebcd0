"""The longest waits as a table: why, where that was recorded of any."""

from __future__ import annotations

import polars as pl

from stepscope.app.present.blame_tables import waits_table

WAITS = pl.DataFrame({"from_ns": [0, 50], "ns": [20, 10], "cause": ["queue", "queue"]})


def test_reasons_have_a_column_where_one_was_recorded() -> None:
    table = waits_table(WAITS, ["", "no free slot"], 5, 0)

    assert table.columns[-1] == "because"
    assert [row[-1] for row in table.rows] == ["", "no free slot"]


def test_reasons_have_no_column_where_none_was_recorded() -> None:
    table = waits_table(WAITS, ["", ""], 5, 0)

    assert table.columns == ("after", "for", "cause")
    assert {len(row) for row in table.rows} == {3}
