"""docs/attach.md on a scheduler that is not ours: its code follows one of nano-vllm's shape."""

from __future__ import annotations

import re
from collections import Counter, deque
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from stepscope.analyzers.check.run import check
from stepscope.app.debug.session import Session
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "attach.md"
BLOCK = 4


class Sequence:
    """A request as nano-vllm's is: tokens of prompt and output together, and how many are kept."""

    def __init__(self, seq_id: int, num_prompt_tokens: int, max_tokens: int) -> None:
        self.seq_id = seq_id
        self.num_prompt_tokens = self.num_tokens = num_prompt_tokens
        self.max_tokens = max_tokens
        self.num_cached_tokens = self.num_scheduled_tokens = 0

    @property
    def num_completion_tokens(self) -> int:
        return self.num_tokens - self.num_prompt_tokens

    @property
    def is_finished(self) -> bool:
        return self.num_completion_tokens >= self.max_tokens


class Scheduler:
    """Prefills first, the first of them in chunks; whoever came last gives its blocks back."""

    def __init__(self, num_blocks: int, budget: int, max_num_seqs: int) -> None:
        self.num_blocks, self.budget, self.max_num_seqs = num_blocks, budget, max_num_seqs
        self.waiting: deque[Sequence] = deque()
        self.running: deque[Sequence] = deque()

    def add(self, seq: Sequence) -> None:
        self.waiting.append(seq)

    def _num_free(self) -> int:
        held = [*self.running, *(seq for seq in self.waiting if seq.num_cached_tokens)]
        return self.num_blocks - sum(-(-seq.num_tokens // BLOCK) for seq in held)

    def schedule(self) -> tuple[list[Sequence], bool]:
        if prefills := self._prefills():
            return prefills, True
        decodes: list[Sequence] = []
        while self.running:
            seq = self.running.popleft()
            while seq.num_tokens % BLOCK == 0 and self._free_beside([seq, *decodes]) < 1:
                self.preempt(self.running.pop() if self.running else seq)
                if seq in self.waiting:
                    break
            else:
                seq.num_scheduled_tokens = 1
                decodes.append(seq)
        self.running.extend(decodes)
        return decodes, False

    def _free_beside(self, seqs: list[Sequence]) -> int:
        return self._num_free() - sum(-(-seq.num_tokens // BLOCK) for seq in seqs)

    def _prefills(self) -> list[Sequence]:
        prefills: list[Sequence] = []
        left = self.budget
        while self.waiting and left and len(prefills) + len(self.running) < self.max_num_seqs:
            seq = self.waiting[0]
            wanted = seq.num_tokens - seq.num_cached_tokens
            is_new = not seq.num_cached_tokens
            if (is_new and self._num_free() < -(-seq.num_tokens // BLOCK) + 1) or (
                wanted > left and prefills
            ):
                break
            seq.num_scheduled_tokens = min(wanted, left)
            left -= seq.num_scheduled_tokens
            prefills.append(seq)
            if seq.num_scheduled_tokens < wanted:
                break
            self.running.append(self.waiting.popleft())
        return prefills

    def preempt(self, seq: Sequence) -> None:
        seq.num_cached_tokens = 0
        self.waiting.appendleft(seq)

    def postprocess(self, seqs: list[Sequence], token_ids: list[int], is_prefill: bool) -> None:
        for seq, _ in zip(seqs, token_ids, strict=True):
            seq.num_cached_tokens += seq.num_scheduled_tokens
            if is_prefill and seq.num_cached_tokens < seq.num_tokens:
                continue
            seq.num_tokens += 1
            if seq.is_finished:
                self.running.remove(seq)


class Followed(NamedTuple):
    """What the code of the page recorded, and what the scheduler held at each step."""

    trace: Trace
    batches: list[dict[str, int]]
    waiting: list[list[str]]
    given: Counter[str]


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Followed:
    """A crowd on few blocks, followed by the first code block of the page."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    given: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), given)  # noqa: S102 - the page of this repository
    path = tmp_path_factory.mktemp("own") / "nano.trace"
    return _run(given["follow"], path)


def _run(follow: Any, path: Path) -> Followed:
    scheduler = Scheduler(num_blocks=18, budget=24, max_num_seqs=5)
    recorder = follow(scheduler, path)
    batches, waiting = [], []
    seqs = [Sequence(number, 6 + 7 * number, 10 + 3 * number) for number in range(6)]
    for seq in seqs:
        scheduler.add(seq)
    while scheduler.waiting or scheduler.running:
        chosen, is_prefill = scheduler.schedule()
        batches.append({str(seq.seq_id): seq.num_scheduled_tokens for seq in chosen})
        waiting.append([str(seq.seq_id) for seq in scheduler.waiting if not seq.num_cached_tokens])
        scheduler.postprocess(chosen, [5] * len(chosen), is_prefill)
    recorder.close()
    tokens = Counter({str(seq.seq_id): seq.num_completion_tokens for seq in seqs})
    return Followed(Trace.open(path), batches, waiting, tokens)


def test_batches_are_the_schedulers_at_every_step(followed: Followed) -> None:
    session, told = Session(followed.trace), []
    for number in range(1, len(followed.batches) + 1):
        session.goto(step=number)
        told.append({row.request: row.num_tokens for row in session.state.batch or ()})

    assert told == followed.batches


def test_outputs_are_as_many_as_were_given(followed: Followed) -> None:
    outputs = followed.trace.outputs.collect()

    assert Counter(outputs["request"].to_list()) == followed.given
    assert outputs.select("request", "position").is_unique().all()


def test_who_was_preempted_waits_again(followed: Followed) -> None:
    events = Counter(followed.trace.lifecycle.collect()["event"].to_list())

    assert events["preempt"] > 0
    assert events["arrive"] == events["admit"] == events["finish"] == 6
    assert events["resume"] == events["preempt"]


def test_nothing_was_dropped_and_nothing_wrong_is_found(followed: Followed) -> None:
    found = {each.code for each in check(followed.trace).findings}

    assert followed.trace.manifest.dropped == {}
    assert not found - {"STV001", "STV002", "STV004", "KVB004"}


def test_the_page_can_be_followed_with_what_it_names() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)

    for code in blocks:
        compile(code, str(PAGE), "exec")
    assert "from follow import follow" in blocks[1]
    assert "`follow.py`" in text
