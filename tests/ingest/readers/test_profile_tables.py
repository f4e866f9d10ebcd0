"""What all readers of profiles report of the records that they made tables of."""

from __future__ import annotations

from stepscope.ingest.derive.steps import UNREAD
from stepscope.ingest.readers.profile_tables import ProfileTables, profile_tables, span_frame

UNKNOWN_TAGS = ["execute_diffusion_1_1024x1024", "execute_context_1(2)"]


def tables_of(*names: str) -> ProfileTables:
    """Tables of annotations with these names, 10 ns apart."""
    times = [10 * at for at in range(len(names))]
    columns = {"track": "main", "category": "user_annotation", "form": "slice", "dur_ns": 5}
    return profile_tables(span_frame({"name": names, "ts_ns": times} | columns))


def test_tags_that_are_not_understood_are_counted_among_the_skipped_records() -> None:
    report = tables_of(*UNKNOWN_TAGS, UNKNOWN_TAGS[0]).report(
        {"events": 3, "arrows": 0}, {"malformed": 2}, {"torn": 1, "fixed": 0}, ["a note"]
    )

    assert report.read == {"events": 3}
    assert report.skipped == {"malformed": 2, UNREAD: 3}
    assert report.repaired == {"torn": 1}
    assert report.notes[0] == "a note"
    assert "3" in report.notes[-1]
    assert UNKNOWN_TAGS[0] in report.notes[-1]


def test_a_reader_that_skipped_such_tags_itself_has_both_counts_added() -> None:
    report = tables_of(UNKNOWN_TAGS[0]).report({}, {UNREAD: 2}, {}, [])

    assert report.skipped == {UNREAD: 3}


def test_tags_that_are_understood_are_steps_and_not_skipped() -> None:
    tables = tables_of("decode[bs=2]")

    assert tables.report({}, {}, {}, []).skipped.get(UNREAD, 0) == 0
    assert len(tables.tables["steps"].lazy().collect()) == 1
