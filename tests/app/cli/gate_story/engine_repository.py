"""A small engine with tests, as it lies in a repository: who comes first is served first, or last.

It decodes for so many requests at once as it has seats; a step takes 50 ms on a clock of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

FIRST, LAST = "self.waiting.pop(0)", "self.waiting.pop()"
ENGINE = '''
STEP_NS = 50_000_000


class Engine:
    """Serves requests: a name, the step at which it comes, and how many tokens it is to have."""

    def __init__(self, recorder, seats=4):
        self.recorder, self.seats = recorder, seats
        self.waiting, self.running, self.left = [], [], {}

    def run(self, requests):
        coming, step = sorted(requests, key=lambda each: each[1]), 0
        while coming or self.waiting or self.running:
            step += 1
            now = step * STEP_NS
            while coming and coming[0][1] <= step:
                name, _, num_tokens = coming.pop(0)
                self.left[name] = num_tokens
                self.waiting.append(name)
                self.told(step, now, name, "arrive", max_tokens=num_tokens, prompt_len=1)
            while self.waiting and len(self.running) < self.seats:
                name = {take}
                self.running.append(name)
                self.told(step, now, name, "admit")
            self.decode(step, now)

    def decode(self, step, now):
        to = self.recorder
        to.steps(
            step=step, ts_ns=now, dur_ns=STEP_NS, kind="decode" if self.running else "idle",
            num_waiting=len(self.waiting), num_running=len(self.running),
        )
        for row, name in enumerate(self.running):
            to.batch_rows(
                step=step, ts_ns=now, row=row, request=name, phase="decode", num_tokens=1
            )
        for name in self.waiting:
            to.decisions(
                step=step, ts_ns=now, subject_kind="request", subject=name, verdict="deferred",
                reason="every seat is taken", resource="seat", needed=1, available=0,
                holder=self.running[0],
            )
        for name in [*self.running]:
            self.left[name] -= 1
            if not self.left[name]:
                self.running.remove(name)
                self.told(step, now + STEP_NS, name, "finish")

    def told(self, step, at, name, event, **more):
        self.recorder.lifecycle(step=step, ts_ns=at, request=name, event=event, **more)
'''
TESTS = """
import os
from pathlib import Path
from random import Random

import pytest
from stepscope import Recorder

from engine import Engine


@pytest.mark.parametrize("seed", map(int, os.environ["SEEDS"].split(",")))
def test_every_request_is_served(seed):
    drawn = Random(seed)
    requests = [(f"req-{n:02}", drawn.randint(1, 240), drawn.randint(5, 20)) for n in range(60)]
    with Recorder(Path(os.environ["OUT"]) / f"{seed}.trace", producer="engine") as recorder:
        engine = Engine(recorder)
        engine.run(requests)
    assert not any(engine.left.values())
"""


def git(repository: Path, *arguments: str) -> None:
    """Run git in a repository, under no name of a person."""
    who = ("-c", "user.name=engine", "-c", "user.email=engine@example.invalid")
    subprocess.run(["git", *who, *arguments], cwd=repository, check=True, capture_output=True)


def repository_of_two_commits(folder: Path) -> Path:
    """A repository with an engine: at `main` it is fair, at `head` a commit has made it unfair."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / "test_engine.py").write_text(TESTS)
    for branch, take in (("main", FIRST), ("head", LAST)):
        if branch != "main":
            git(folder, "checkout", "--quiet", "-b", branch)
        (folder / "engine.py").write_text(ENGINE.replace("{take}", take))
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", f"Take the next from the queue: {take}")
    return folder


def record(repository: Path, commit: str, out: Path, seeds: Iterable[int]) -> None:
    """Check a commit out, and let its tests record a trace for each seed into a folder."""
    git(repository, "checkout", "--quiet", commit)
    out.mkdir(parents=True)
    given = {"OUT": str(out), "SEEDS": ",".join(map(str, seeds)), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:dash"]
    done = subprocess.run(
        command, cwd=repository, env={**os.environ, **given}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
