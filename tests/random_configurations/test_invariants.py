"""Settings that nobody chose: what is found in them is so, and faults that show are found."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.cor.cor001_mix_on_occupied_group import MixOnOccupiedGroup
from stepscope.engine.faults import FAULTS, fault
from stepscope.engine.scenarios import SCENARIOS, Options, scenario
from stepscope.ingest.trace import Trace
from tests.engine.recorded_once import RecordedOnce
from tests.random_configurations.draw import (
    DECODED,
    FIXED,
    RANGES,
    Configuration,
    configuration,
    of_fault,
)
from tests.random_configurations.faults import SHOWN, TRIED, trials
from tests.random_configurations.invariants import broken
from tests.random_configurations.run import confirmed, differing, recorded, run
from tests.random_configurations.tables import Tables
from tests.tiers import sampled, slow

SEEDS = range(1000, 1006)
NAMES = [each.name for each in SCENARIOS]


@slow
@pytest.mark.parametrize("name", NAMES)
def test_a_fixed_variant_runs_again_alike_is_sound_and_what_is_found_in_it_is_so(name: str) -> None:
    assert run(configuration(name, SEEDS[0])).wrong == []


@slow
@pytest.mark.parametrize("name", NAMES)
def test_other_seeds_of_a_fixed_variant_are_sound_as_well(name: str) -> None:
    wrong = [run(configuration(name, seed)).wrong for seed in SEEDS[1:]]

    assert wrong == [[]] * len(wrong)


@slow
@pytest.mark.parametrize("name", sampled(DECODED, list(DECODED)[:1]))
def test_a_decoder_gives_everybody_their_own_tokens_whatever_the_settings(name: str) -> None:
    pytest.importorskip("torch")

    assert run(configuration(name, SEEDS[0], "torch")).wrong == []


@slow
@pytest.mark.parametrize("name", DECODED)
def test_a_decoder_gives_everybody_their_own_tokens_with_other_seeds(name: str) -> None:
    pytest.importorskip("torch")
    wrong = [run(configuration(name, seed, "torch")).wrong for seed in SEEDS[1:3]]

    assert wrong == [[]] * len(wrong)


def trace_of(runs: RecordedOnce, configuration: Configuration) -> Trace:
    faults = frozenset([configuration.fault] if configuration.fault else [])
    options = Options(configuration.seed, configuration.settings, faults, configuration.executor)
    return runs.trace(configuration.scenario, configuration.variant, options)


def test_a_run_with_another_seed_is_another_run(tmp_path: Path) -> None:
    one = Configuration("fcfs-preemption", "after", {"requests": "4", "jitter_ms": "20"}, 0)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        recorded(replace(one, seed=seed), tmp_path / name)
    first, same, other = (Trace.open(tmp_path / name) for name in "abc")

    assert list(differing(first, same)) == []
    assert "lifecycle" in differing(first, other)


# What breaks each invariant, and what is said of it then.
BREAKS = {
    "scheduled-twice": r"is 2 times in step",
    "reserve-not-held": r"more than its budget",
    "block-given-twice": r"claims .* which",
    "block-leaked": r"still have",
    "executor-dies": r"ends so: \[\]",
    "token-past-cap": r"asked for \d+ tokens and got",
    "ignored-told-as-finished": r"asked for \d+ tokens and got 0",
    "stale-reservation": r"core \d+ runs task",
}
FEW = {"mixed-batches": {"requests": "24", "max_tokens": "32"}}


def test_what_does_not_hold_is_told(recorded_once: RecordedOnce) -> None:
    lines = {}
    for name in BREAKS:
        of = fault(name)
        faulty = Configuration(of.scenario, of.variant, FEW.get(of.scenario, {}), 0, name)
        lines[name] = "\n".join(broken(Tables(trace_of(recorded_once, faulty))))

    assert [name for name, line in BREAKS.items() if not re.search(line, lines[name])] == []


@slow
def test_an_output_that_is_not_what_it_is_alone_is_told(recorded_once: RecordedOnce) -> None:
    pytest.importorskip("torch")
    of = fault("logits-per-token")
    faulty = Configuration(of.scenario, of.variant, {}, 0, of.name, "torch")

    assert "is not what it is alone" in "\n".join(broken(Tables(trace_of(recorded_once, faulty))))


def test_every_setting_of_a_scenario_is_drawn() -> None:
    for name in NAMES:
        drawn = configuration(name, 0)

        assert drawn.settings.keys() == scenario(name).settings.keys() == RANGES[name].keys()
        assert drawn.variant in FIXED[name]
        assert drawn == configuration(name, 0) != configuration(name, 1)


def test_what_the_engine_refuses_it_refuses_in_one_line() -> None:
    outcome = run(Configuration("mix-admission", "after", {"task_slots": "0"}, 0))

    assert outcome.refusal == "task_slots=0: it must be at least 1"


RULES_OF = {rule.code: rule for rule in RULES}
# A finding of each kind, and the run that has it: the count must be able to say no.
KNOWN = {
    "COR001": Configuration("mix-admission", "before", {}, 0),
    "COR003": Configuration("mix-admission", "before", {}, 0),
    "COR006": Configuration("mix-admission", "reserve-group", {"groups": "2"}, 0),
    "COR009": Configuration("mix-admission", "after", {"groups": "24", "threads": "1"}, 0),
    "COR013": Configuration("mix-admission", "before", {"late_part": "corrupts"}, 0),
    "BUF003": Configuration(
        "ep-multiplexing", "v2-host-staging", {}, 0, "copy-on-unordered-stream"
    ),
    "EQV001": Configuration("mix-admission", "before", {"late_part": "corrupts"}, 0),
    "STV003": Configuration("fcfs-preemption", "defer-only", {}, 0),
    "STV005": Configuration(
        "mixed-batches",
        "after",
        {"budget": "256", "requests": "8", "max_tokens": "32"},
        0,
        "reserve-for-max-num-seqs",
    ),
    "STV006": Configuration("ep-multiplexing", "before", {}, 0),
    "STV018": Configuration("fcfs-preemption", "after", {"completions": "bucketed"}, 0),
    "KVB003": Configuration("fcfs-preemption", "before", {}, 0),
    "KVB004": Configuration("fcfs-preemption", "before", {}, 0),
    "STV007": of_fault(fault("incompatible-requeued-on-drained-queue"), 2),
    "STV008": of_fault(fault("one-victim-then-ignored"), 2),
    "BAT011": Configuration("ep-multiplexing", "v2-grouped-gemm", {}, 0),
    "STV012": Configuration("ep-multiplexing", "after", {"failing_prompts": "2"}, 0),
}


@slow
@pytest.mark.parametrize("code", KNOWN)
def test_a_count_confirms_what_is_so_and_nothing_else(
    recorded_once: RecordedOnce, code: str
) -> None:
    trace = trace_of(recorded_once, KNOWN[code])
    tables = Tables(trace)
    found = next(each for each in RULES_OF[code].check(trace) if each.code == code)

    assert confirmed(tables, found)
    assert not confirmed(tables, _said_otherwise(found))


@slow
def test_what_is_not_listed_one_by_one_is_counted_too(recorded_once: RecordedOnce) -> None:
    many = Configuration("mix-admission", "before", {"admission": "per-core-slot", "steps": "3"}, 0)
    trace = trace_of(recorded_once, many)
    (rest,) = [each for each in MixOnOccupiedGroup(limit=3).check(trace) if "more" in each.evidence]

    assert confirmed(Tables(trace), rest)
    assert not confirmed(Tables(trace), replace(rest, evidence={**rest.evidence, "more": 1}))


def _said_otherwise(found: Finding) -> Finding:
    """The same of another number, place and request."""
    evidence = {
        key: value + 1 if isinstance(value, int) else value for key, value in found.evidence.items()
    }
    return replace(
        found,
        message=found.message.replace("1", "2").replace("3", "4"),
        evidence=evidence,
        count=found.count + 1 << 20,
        step=-1,
        task=-1,
    )


SHOWING = ["token-past-cap", "block-leaked", "lost-ring-advance"]


def test_every_fault_can_be_seen_without_its_rule() -> None:
    assert SHOWN.keys() == {each.name for each in TRIED}
    assert {each.executor for each in FAULTS if each not in TRIED} == {"torch"}


@slow
@pytest.mark.parametrize("name", sampled(SHOWING, SHOWING[:1]))
def test_a_fault_that_shows_in_a_random_configuration_is_found(name: str) -> None:
    found = trials(fault(name), 2)

    assert [each.configuration.command for each in found if not each.is_found] == []
    assert len(found) == 2


def test_who_is_computed_again_in_a_step_does_not_stand_behind_its_prompts(tmp_path: Path) -> None:
    given = {
        "workload": "stream", "requests": "16", "max_tokens": "18", "max_num_seqs": "15",
        "budget": "1029", "kv_blocks": "79", "timeout_s": "21", "per_minute": "1389",
        "video_blocks": "309", "decode_rounds": "7", "max_passes": "8", "loads": "reserved",
    }  # fmt: skip
    drawn = Configuration("waiting-queue", "after", given, 793, "prompts-always-first")

    recorded(drawn, tmp_path / "t")

    assert not SHOWN["prompts-always-first"](Tables(Trace.open(tmp_path / "t")))
