"""BAT015: far more is reserved for decodes than they take, and prompts are bound by it."""

from __future__ import annotations

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.bat.bat015_reserve_unused import ReserveUnused
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import step
from tests.looped import looped
from tests.traces import trace_of


def mixed(number: int, *, decodes: int = 19, reserved: int = 256, **more: int) -> Row:
    """A mixed batch of a budget of 2,048, in which prompts take all that the reserve leaves."""
    counts = {
        "token_budget": 2048, "reserved_tokens": reserved, "num_decode_tokens": decodes,
        "num_prefill_tokens": 2048 - reserved, "num_waiting": 3,
    }  # fmt: skip
    return step(number, "mixed", **counts) | more


def unused(*steps: Row) -> list[Finding]:
    return ReserveUnused().check(trace_of(steps=steps))


def test_a_reserve_far_above_what_decodes_take_is_found() -> None:
    sound = mixed(1, decodes=19, reserved=19)

    (found,) = unused(sound, *(mixed(n, decodes=8 + n) for n in range(2, 12)))

    assert found.message == (
        "in 10 of 11 steps in which the reserve limited prompts, up to 256 tokens were reserved "
        "for decodes that took 14.5 on average: 2,415 tokens stayed unused, 12% of the budget; "
        "worst step 2, which reserved 256 for 10"
    )
    assert (found.step, found.count, found.evidence["unused_tokens"]) == (2, 10, 2415)


def test_a_reserve_that_leaves_prompts_nothing_is_found_where_any_wait() -> None:
    bound = {"reserved": 256, "token_budget": 256, "num_prefill_tokens": 0}

    assert len(unused(*(mixed(n, **bound) for n in range(9)))) == 1
    assert unused(*(mixed(n, **bound, num_waiting=0) for n in range(9))) == []


@looped(
    "steps",
    [
        [mixed(n, reserved=19) for n in range(20)],
        [mixed(n, reserved=37) for n in range(20)],
        [mixed(n) for n in range(7)],
        [mixed(n, num_prefill_tokens=900) for n in range(20)],
        [*(mixed(n) for n in range(9)), *(mixed(n, reserved=19) for n in range(10, 20))],
        [mixed(n, decodes=1, reserved=9) for n in range(20)],
    ],
    ids=["as needed", "less than twice", "few steps", "prompts need no more", "in less than half",
         "next to nothing of the budget"],
)  # fmt: skip
def test_a_reserve_that_costs_nothing_is_clean(steps: list[Row]) -> None:
    assert unused(*steps) == []


@looped(
    ("budget", "requests"), [("512", "8"), ("1024", "12"), ("2048", "20"), ("4096", "32")], ids=str
)
def test_a_reserve_for_all_that_could_run_is_found_at_any_budget(
    record: Record, budget: str, requests: str
) -> None:
    settings = {"budget": budget, "requests": requests, "max_tokens": "64"}

    (found,) = ReserveUnused().check(
        record("mixed-batches", "after", "reserve-for-max-num-seqs", **settings)
    )

    assert found.evidence["reserved_tokens"] == 256
    assert ReserveUnused().check(record("mixed-batches", "after", **settings)) == []


@each_scenario
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert ReserveUnused().check(record(scenario)) == []
