from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.ingest.attach.sglang.formed_rows import Rows

DRAFTS = SimpleNamespace(speculative_num_draft_tokens=4)
DECODE = SimpleNamespace(is_extend=lambda: False)


def rows(*, overlaps: bool = False) -> Rows:
    made = Rows(SimpleNamespace(draft_worker=DRAFTS, enable_overlap=overlaps))
    made.arrived("a")
    return made


def request(num_outputs: int, right: int, finished_len: int | None = None) -> Any:
    return SimpleNamespace(
        rid="a", origin_input_ids=[7] * 10, output_ids=[9] * num_outputs,
        spec_num_correct_drafts=right, finished_len=finished_len,
    )  # fmt: skip


def test_a_step_with_drafts_gives_as_many_outputs_as_were_right_and_one() -> None:
    told = rows()
    given = [told.gave(request(1, 0)), told.gave(request(4, 2)), told.gave(request(5, 2))]

    assert [each[1:] for each in given] == [(0, 1, 0), (1, 3, 2), (4, 1, 0)]


def test_outputs_behind_the_end_are_not_given_though_their_drafts_were_right() -> None:
    told = rows()
    told.gave(request(1, 0))

    assert told.gave(request(5, 3, finished_len=3))[1:] == (1, 2, 3)


@pytest.mark.parametrize(("overlaps", "computed"), [(False, 10 + 1 - 1), (True, None)])
def test_how_much_is_computed_is_not_known_where_the_step_before_is_still_under_way(
    *, overlaps: bool, computed: int | None
) -> None:
    told = rows(overlaps=overlaps)
    told.gave(request(1, 0))

    (row,) = told.of(SimpleNamespace(forward_mode=DECODE, reqs=[request(1, 0)]), (), ())

    assert (row.num_tokens, row.num_draft, row.num_computed, row.position) == (4, 3, computed, None)
