"""Wherever a walk at random comes, the state is the engine's, and does not depend on the way."""

from __future__ import annotations

from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from stepscope.app.debug import Session
from tests.app.debug.test_state import MIXED, Run, recorded
from tests.looped import looped
from tests.tiers import examples

SMALL = {
    ("fcfs-preemption", "before"): {"requests": "12"},
    ("slot-recycling", "before"): {},
    ("mixed-batches", "mtp"): MIXED,
}
PLACES = st.floats(0, 1)


class Walk(RuleBasedStateMachine):
    """One session goes about; another one that comes straight to the same place is the judge."""

    run: Run

    def __init__(self) -> None:
        super().__init__()
        self.session, self.judge = Session(self.run.trace), Session(self.run.trace)
        self.held = {snapshot["step"]: snapshot for snapshot in self.run.truth.of_steps()}
        self.steps, self.seqs = list(self.held), self.session.moments.changes.every().tolist()

    @rule(grain=st.sampled_from(("step", "seq")), count=st.integers(1, 5))
    def forward(self, grain: str, count: int) -> None:
        for _ in range(count):
            self.session.next(grain)

    @rule(grain=st.sampled_from(("step", "seq")), count=st.integers(1, 5))
    def backward(self, grain: str, count: int) -> None:
        for _ in range(count):
            self.session.back(grain)

    @rule(where=PLACES)
    def to_a_step(self, where: float) -> None:
        step = self.steps[int(where * (len(self.steps) - 1))]
        self.session.goto(step=step)
        assert self.session.state.as_dict() == self.held[step]

    @rule(where=PLACES)
    def to_a_change(self, where: float) -> None:
        self.session.goto(seq=self.seqs[int(where * (len(self.seqs) - 1))])

    @invariant()
    def the_way_does_not_matter(self) -> None:
        assert self.session.state == self.judge.state_at(self.session.position)
        step = self.session.position.step
        place = None if step is None else self.session.moments.place_of(step)
        is_formed = place is not None and (
            self.session.position == self.session.moments.at_step(place)
        )
        if step is not None and is_formed:
            assert self.session.state.as_dict() == self.held[step]

    @invariant()
    def a_change_comes_back_to_itself(self) -> None:
        before = self.session.state
        if before.seq in self.seqs[:-1]:
            self.judge.goto(seq=before.seq)
            there = self.judge.state
            assert self.judge.next("seq")
            assert self.judge.back("seq")
            assert self.judge.state == there


@looped(("name", "variant"), SMALL)
def test_a_walk_at_random_shows_what_the_engine_held_wherever_it_comes(
    tmp_path: Path, name: str, variant: str
) -> None:
    Walk.run = recorded(name, variant, tmp_path / "run.trace", SMALL[name, variant])

    run_state_machine_as_test(
        Walk, settings=settings(max_examples=examples(15), stateful_step_count=15, deadline=None)
    )
