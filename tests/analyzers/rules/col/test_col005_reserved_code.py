"""COL005: a slot or token value collides with a command code."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.col.col005_reserved_code import ReservedCode
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import word
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import token
from tests.looped import looped
from tests.traces import trace_of

WORDS = {"shutdown": "0xffffffff", "prefill": 0xFFFFFFF0}
CONFIG = {"parallel": {"codebook": WORDS}}


def reserved(*rows: Row, outputs: list[Row] | None = None) -> list[Finding]:
    trace = trace_of(collectives=rows, outputs=outputs or [], config=CONFIG)
    return ReservedCode().check(trace)


def test_a_slot_whose_32_bits_are_a_command_is_found() -> None:
    (found,) = reserved(word(1, 0, "slot", -1), word(1, 1, "allocate", -1))

    assert found.message == (
        "rank 1 was at slot -1 2 times, whose 32 bits, 0xffffffff, are the command shutdown: "
        "first with slot in step 1"
    )


def test_a_token_that_is_a_command_is_found() -> None:
    (found,) = reserved(word(0, 0, "decode", 0), outputs=[token(3, "a", 0, token=0xFFFFFFF0)])

    assert (found.request, found.evidence["command"]) == ("a", "prefill")
    assert found.message.endswith("are the command prefill: first of a in step 3")


@looped("number", [0, 3, -2, 15])
def test_other_slots_are_clean(number: int) -> None:
    assert reserved(word(1, 0, "slot", number)) == []


@looped(
    "config",
    [{}, {"parallel": 3}, {"parallel": {"codebook": ["0xffffffff"]}},
     {"parallel": {"codebook": {"shutdown": "none", "prefill": None, "x": 2**40}}}],
)  # fmt: skip
def test_without_a_codebook_it_is_not_applicable(config: dict[str, Any]) -> None:
    trace = trace_of(collectives=[word(1, 0, "slot", -1)], config=config)

    assert check(trace, (ReservedCode(),)).not_applicable == ("COL005",)


@looped(
    ("fault", "variant", "command"),
    [("sentinel-as-slot", "after", "shutdown"), ("v1-head-v2-worker", "before", "prefill")],
)
def test_a_command_where_a_slot_stands_is_found(
    record: Record, fault: str, variant: str, command: str
) -> None:
    found = ReservedCode().check(record("ep-multiplexing", variant, fault))

    assert {each.evidence["command"] for each in found} == {command}
    assert found[-1].rank == 1


@looped("variant", ["before", "after"])
def test_slots_far_below_the_codes_are_clean(record: Record, variant: str) -> None:
    assert ReservedCode().check(record("ep-multiplexing", variant, max_tokens="5")) == []
