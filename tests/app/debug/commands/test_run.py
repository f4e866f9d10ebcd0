"""Commands answer in words and in facts, and what a trace does not tell is never empty."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.app.debug.commands import COMMANDS, GROUPS, run
from stepscope.app.debug.debugger import Debugger
from stepscope.app.present.plain_text import lines
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.app.debug.small_traces import a_fight_for_a_block
from tests.looped import looped
from tests.traces import trace_of


@pytest.fixture(autouse=True)
def own_flags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path))


def said(debugger: Debugger, *typed: str) -> str:
    """What the last of some lines prints."""
    for line in typed[:-1]:
        run(debugger, line)
    return "\n".join(lines(run(debugger, typed[-1]).blocks))


def test_who_took_a_block_before_is_where_rwatch_goes() -> None:
    told = said(Debugger(a_fight_for_a_block()), "goto 4", "rwatch block 5")

    assert "op=claim resource=kv-block id=5 owner=b" in told
    assert "step 2 of 4" in told  # it was claimed for step 3, whose batch was not formed yet


def test_who_had_a_block_is_a_table_with_an_arrow_at_who_has_it() -> None:
    told = said(Debugger(a_fight_for_a_block()), "goto 2", "who block 5").splitlines()

    assert [line.split()[:2] for line in told[2:]] == [["→", "a"], ["b", "claim"]]


def test_continue_says_which_stop_was_hit_and_by_which_row() -> None:
    told = said(Debugger(a_fight_for_a_block()), "break preempt", "continue")

    assert "stop 1, break preempt" in told
    assert "lifecycle: event=preempt request=a by_request=b" in told


def test_trace_points_print_a_line_for_each_hit_that_is_passed() -> None:
    debugger = Debugger(a_fight_for_a_block())

    told = said(debugger, "trace steps: num_waiting > 2 => step, num_waiting", "goto 1", "step 3")

    assert told.count("- trace 1 at") == 2
    assert "step=4 num_waiting=4" in told


def test_all_is_every_hit_at_once() -> None:
    answer = run(Debugger(a_fight_for_a_block()), "all steps: num_waiting > 2 => num_waiting")

    assert answer.facts["num_hits"] == 2
    assert [row["num_waiting"] for row in answer.facts["steps"]] == [3, 4]


def test_a_value_is_drawn_from_its_least_to_its_most() -> None:
    value = run(Debugger(a_fight_for_a_block()), "value num_waiting * 2").facts["value"]

    assert (value["min"], value["max"], value["here"]) == (2, 8, 2)
    assert value["sparkline"].strip()[0] == "▁"
    assert value["sparkline"][-1] == "█"


def test_what_is_no_finite_number_is_left_out_of_a_value() -> None:
    debugger = Debugger(a_fight_for_a_block())

    value = run(debugger, "value num_waiting / (num_waiting - 1)").facts["value"]
    never = said(debugger, "value 1 / (num_waiting - num_waiting)")

    assert value["max"] == 2
    assert "is null throughout" in never
    assert run(debugger, "value num_waiting::int").facts["value"]["max"] == 4


def test_flags_are_kept_beside_the_trace_and_not_in_it(sample_traces: Path) -> None:
    path = sample_traces / "fcfs-preemption-before.trace"
    before = sorted(path.rglob("*"))
    said(Debugger(Trace.open(path)), "goto 67", "flag storm")

    again = Debugger(Trace.open(path))

    assert "step 67" in said(again, "goto @storm")
    assert sorted(path.rglob("*")) == before


def test_diff_says_what_differs_between_two_places() -> None:
    debugger = Debugger(a_fight_for_a_block())
    told = said(debugger, "goto 2", "flag then", "goto 4", "flag now", "diff @then @now")

    assert "running" in told
    assert "+b -a" in told
    assert debugger.position.step == 4


def test_why_gives_the_recorded_reason_and_says_where_there_is_none() -> None:
    debugger = Debugger(a_fight_for_a_block())

    assert "too few blocks" in said(debugger, "goto 3", "why c")
    assert "not recorded" in said(debugger, "why b")


def test_stops_are_listed_and_deleted() -> None:
    debugger = Debugger(a_fight_for_a_block())

    assert "no stops" in said(debugger, "info stops")
    assert "break preempt" in said(debugger, "break preempt", "watch block 5", "info stops")
    assert "break preempt" not in said(debugger, "delete 1", "info stops")


@looped(
    ("line", "told"),
    [
        ("contniue", "no command 'contniue'; did you mean continue?"),
        ("goto", "nothing is no place; write it like 86, 8.66s"),
        ("goto 99", "no step 99; it has steps 1 to 4"),
        ("goto @x", "no flag is called 'x'"),
        ("flag a/b", "cannot be the name of a flag"),
        ("print waitin", "not known; did you mean waiting"),
        ("why zzz", "no request 'zzz'"),
        ("who block", "write it like who block 5"),
        ("step x", "not a number of times"),
        ("delete 3", "no stop 3"),
        ("info x", "not known; it can be stops, ranks, flags"),
        ("diff", "write it like diff @a @b"),
        ("trace preempt =>", "no column stands behind =>"),
        ("sql select * from stepz", "no table 'stepz'"),
        ("rank x", "write it like rank 1"),
    ],
)
def test_what_cannot_be_done_is_one_line_that_says_what_next(line: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        run(Debugger(a_fight_for_a_block()), line)

    assert told in str(raised.value)


def test_every_command_runs_its_example_on_a_recorded_run(sample_traces: Path) -> None:
    debugger = Debugger(Trace.open(sample_traces / "mix-admission-before.trace"))
    commands = [command for group in GROUPS for command in group.commands]
    examples = [command.example(debugger) for command in commands]

    for example in ["break deferred", *filter(None, examples)]:
        answer = run(debugger, example)
        json.dumps(dict(answer.facts))
        assert answer.blocks, example


def test_help_names_every_command_and_shows_one_with_an_example() -> None:
    debugger = Debugger(a_fight_for_a_block())
    overview = said(debugger, "help")

    assert all(command.usage in overview for command in COMMANDS.values())
    assert "for this trace: break steps: num_waiting >" in said(debugger, "help break")
    assert all(len(line) <= 80 for line in overview.splitlines()[:-2])


def test_of_an_empty_trace_every_side_is_not_recorded() -> None:
    told = said(Debugger(trace_of()), "state").splitlines()

    assert len(told) > 10
    assert all(line.endswith("not recorded") for line in told[1:])


def test_text_of_a_trace_never_steers_a_terminal() -> None:
    trace = trace_of(
        lifecycle=[{"ts_ns": 1, "request": "a\x1b[2J\n", "event": "arrive", "queue_index": 0}],
        steps=[{"step": 1, "ts_ns": 2, "kind": "idle"}],
    )
    told = said(Debugger(trace), "break arrive", "goto start", "rc", "print waiting")

    assert "\x1b" not in told
    assert "a·[2J·" in told


def test_who_is_left_out_is_not_recorded_where_the_trace_has_no_queue() -> None:
    step = {"step": 1, "ts_ns": 100, "kind": "decode"}
    debugger = Debugger(trace_of(steps=[step]))

    answer = run(debugger, "why")

    assert said(debugger, "why") == "not recorded: the trace does not say who waits"
    assert answer.facts == {"left_out": None}


def test_why_takes_a_place_and_stays_where_it_is() -> None:
    debugger = Debugger(a_fight_for_a_block())
    here = said(debugger, "goto 3", "why c")

    assert said(debugger, "flag then", "goto 1", "why c @3") == here
    assert said(debugger, "why c @then") == here
    assert said(debugger, "why c @67%") == here
    assert debugger.position.step == 1


def test_why_not_at_a_step_is_about_the_batch_of_that_step() -> None:
    debugger = Debugger(a_fight_for_a_block())

    assert "too few blocks" in said(debugger, "goto 1", "why c not at 3")
    assert "b is in the batch of step 3" in said(debugger, "why b not at 3")
    assert said(debugger, "why not at 3").startswith("left out of step 3")
    assert debugger.position.step == 1


def test_who_is_called_like_a_place_is_still_asked_about() -> None:
    event = {"step": 1, "ts_ns": 90, "event": "arrive", "queue_index": 0}
    names = ("a not at 3", "a @3")
    debugger = Debugger(trace_of(lifecycle=[{**event, "request": name} for name in names]))

    assert all(said(debugger, f"why {name}").startswith(f"{name}:") for name in names)


def test_the_arrow_at_who_has_a_block_follows_changes_of_one_moment() -> None:
    claim = {"step": 1, "ts_ns": 100, "resource": "kv-block", "id": 5}
    ops = (("claim", "a"), ("release", "a"), ("claim", "b"))
    trace = trace_of(
        allocations=[
            {**claim, "op": op, "owner": owner, "seq": seq}
            for seq, (op, owner) in enumerate(ops, start=1)
        ]
    )
    debugger = Debugger(trace)

    marked = [
        [line.split()[1] for line in said(debugger, f"goto #{seq}", "who block 5").splitlines()
         if line.startswith("→")]
        for seq in (1, 2, 3)
    ]  # fmt: skip

    assert marked == [["a"], [], ["b"]]


def test_what_a_rank_does_not_record_is_not_recorded_of_it() -> None:
    step = {"step": 1, "ts_ns": 100, "kind": "decode"}
    event = {"ts_ns": 90, "step": 1, "request": "a", "event": "arrive", "queue_index": 0}
    row = {"ts_ns": 100, "step": 1, "row": 0, "request": "a", "phase": "decode", "num_tokens": 1}
    trace = trace_of(steps=[step, {**step, "rank": 1}], lifecycle=[event], batch_rows=[row])
    debugger = Debugger(trace, rank=1)

    assert "not recorded" in said(debugger, "print batch")
    assert "not recorded" in said(debugger, "print requests")


def test_a_mark_of_another_rank_is_compared_as_that_rank_was() -> None:
    event = {"ts_ns": 90, "step": 1, "event": "arrive", "queue_index": 0}
    ranks = [(0, "a"), (0, "b"), (1, "c")]
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 100, "kind": "decode", "rank": rank} for rank in (0, 1)],
        lifecycle=[{**event, "rank": rank, "request": name} for rank, name in ranks],
    )
    debugger = Debugger(trace)

    told = said(debugger, "flag x", "rank 1", "flag y", "diff @x @y")

    assert "+c -b -a" in told


def test_an_answer_of_very_many_rows_is_cut_and_says_so() -> None:
    step = {"ts_ns": 1, "kind": "decode"}
    debugger = Debugger(trace_of(steps=[{**step, "step": number} for number in range(400)]))

    answer = run(debugger, "sql select a.step from steps a cross join steps b")

    assert len(answer.facts["rows"]) == 100_000
    assert "given up behind 100,000 rows" in "\n".join(lines(answer.blocks))
