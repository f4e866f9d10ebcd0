"""How several rows are decoded: whatever the kind, each row is sampled from its own logits."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.engine.clock import VirtualClock
from stepscope.engine.parallel.costs import Costs
from stepscope.engine.parallel.rank_config import ParallelConfig
from stepscope.engine.parallel.shares.access_log import AccessLog
from stepscope.engine.parallel.shares.decodes import (
    BATCHED,
    DECODES,
    DEVICE_STAGING,
    Decode,
    Staging,
    decode_kind,
)
from stepscope.engine.parallel.shares.logits import LogitsRows
from stepscope.engine.scenarios.ep_multiplexing import VARIANTS
from stepscope.ingest.errors import ConfigError
from tests.engine.ep_runs import served
from tests.tiers import slow

NUM_ROWS = 4
kinds = pytest.mark.parametrize("kind", DECODES, ids=lambda kind: kind.name)


def staged(kind: Decode, *faults: str) -> tuple[LogitsRows, Staging | None]:
    logits = LogitsRows(AccessLog(VirtualClock(), None))
    return logits, kind.staging(logits, Costs(), faults)


def sampled(logits: LogitsRows, staging: Staging) -> list[int]:
    """What each row samples from, where row n's logits are n."""
    for row in staging.in_order(NUM_ROWS):
        logits.write(0, np.array([float(row)]), row)
        staging.stage(row, row)
    return [int(staging.read(row, row)[0]) for row in range(NUM_ROWS)]


def test_no_two_kinds_have_one_name() -> None:
    assert len({each.name for each in DECODES}) == len(DECODES)


@kinds
def test_rows_that_are_decoded_one_after_another_are_sampled_from_their_own_logits(
    kind: Decode,
) -> None:
    logits, staging = staged(kind)

    assert staging is None or sampled(logits, staging) == [*range(NUM_ROWS)]


@kinds
def test_a_row_takes_time_to_move_where_rows_are_moved(kind: Decode) -> None:
    _, staging = staged(kind)

    assert staging is None or staging.stage_ns(NUM_ROWS - 1) > 0


def test_rows_that_are_decoded_together_are_not_moved() -> None:
    assert staged(BATCHED)[1] is None


def test_on_the_device_every_row_is_sampled_from_the_first_where_that_is_the_fault() -> None:
    logits, staging = staged(DEVICE_STAGING, "every-row-samples-row-0")

    assert staging is not None
    assert sampled(logits, staging) == [0] * NUM_ROWS


@kinds
def test_a_rank_in_another_process_is_told_how_rows_are_decoded(kind: Decode) -> None:
    config = ParallelConfig(decode=kind.name)

    assert decode_kind(ParallelConfig.from_dict(config.as_dict()).decode) is kind


def test_rows_are_decoded_together_where_nothing_else_is_said() -> None:
    assert decode_kind(ParallelConfig().decode) is BATCHED


def test_a_kind_that_is_not_known_is_refused_with_all_that_are() -> None:
    with pytest.raises(ConfigError) as refused:
        decode_kind("by-hand")

    assert refused.value.todo == f"choose one of {', '.join(each.name for each in DECODES)}"


@slow
@kinds
def test_every_kind_serves_what_the_model_says_to_each_request_alone(kind: Decode) -> None:
    variant = next(
        name
        for name, config in VARIANTS.items()
        if config.decode == kind.name and config.num_slots > 1
    )

    assert served(variant, requests="4")["equal_to_solo"] == "4/4"
