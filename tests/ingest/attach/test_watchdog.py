"""A scheduler that stands still is told of once; a signal is heard where the engine hangs."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from stepscope.ingest.attach.watchdog import DEFAULT_STALL_S, STALL, Watchdog, stall_seconds

SHORT_S = 0.05
PATIENCE_S = 180.0  # a machine may be busy with other things; nothing here waits this long


class Clock:
    """A clock that is set, and counts how often it was read."""

    def __init__(self) -> None:
        self.now_s, self.num_reads = 100.0, 0

    def __call__(self) -> float:
        now_s = self.now_s
        self.num_reads += 1
        return now_s

    def is_read(self, times: int) -> bool:
        """Wait until it was read so many times more."""
        before = self.num_reads
        return comes_true(lambda: self.num_reads >= before + times)


class Engine:
    """Steps that are counted, requests that are open, and what the watchdog told of it."""

    def __init__(self, num_open: int = 1, stall_s: float = SHORT_S) -> None:
        self.steps, self.open, self.told = 0, num_open, list[str]()
        self.clock = Clock()
        self.dog = Watchdog(
            lambda: self.steps, lambda: self.open, self.told.append, stall_s, self.clock
        )
        self.dog.start()
        assert comes_true(lambda: self.clock.num_reads >= 1)

    def stands_still(self) -> None:
        """Let a second pass without a step, and the watchdog look a few times."""
        self.clock.now_s += 1
        assert self.clock.is_read(3)

    def waits_for(self, num: int) -> bool:
        return comes_true(lambda: len(self.told) >= num)


def comes_true(is_so: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE_S
    while not is_so() and time.monotonic() < until:
        time.sleep(0.005)
    return is_so()


@pytest.fixture
def num_open() -> int:
    return 1


@pytest.fixture
def engine(num_open: int) -> Iterator[Engine]:
    before = None if os.name == "nt" else signal.getsignal(signal.SIGUSR2)
    made = Engine(num_open)
    yield made
    made.dog.stop()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGUSR2, before)


def test_standing_still_with_requests_open_is_told_once(engine: Engine) -> None:
    engine.stands_still()
    engine.stands_still()

    assert engine.told == ["no step for 1.0 s while 1 requests are open"]


def test_a_second_time_is_told_again(engine: Engine) -> None:
    engine.stands_still()
    engine.steps += 1
    assert engine.clock.is_read(2)
    assert len(engine.told) == 1

    engine.stands_still()

    assert len(engine.told) == 2


@pytest.mark.parametrize("num_open", [0])
def test_an_engine_that_has_nobody_to_serve_does_not_stall(engine: Engine) -> None:
    engine.stands_still()

    assert engine.told == []


@pytest.mark.parametrize("num_open", [0])
def test_a_signal_asks_for_the_state(engine: Engine) -> None:
    os.kill(os.getpid(), signal.SIGUSR2)

    assert engine.waits_for(1)
    assert engine.told == ["signal SIGUSR2"]


def test_a_signal_is_heard_while_the_main_thread_is_in_c_code() -> None:
    source = (
        "import ctypes, sys; from stepscope.ingest.attach.watchdog import Watchdog\n"
        "dog = Watchdog(lambda: 0, lambda: 0, lambda why: print(why, flush=True), 0.0)\n"
        "dog.start(); print('up', flush=True)\n"
        "libc = ctypes.CDLL(None)\n"
        "while True: libc.sleep(3600)\n"
    )
    hung = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert hung.stdout is not None
    assert hung.stdout.readline() == "up\n"

    hung.send_signal(signal.SIGUSR2)
    ready, _, _ = select.select([hung.stdout], [], [], PATIENCE_S)
    line = hung.stdout.readline() if ready else "nothing came"
    hung.kill()
    hung.wait()
    hung.stdout.close()

    assert line == "signal SIGUSR2\n"


def test_a_signal_that_the_engine_uses_itself_stays_its_own() -> None:
    heard = threading.Event()
    before = signal.signal(signal.SIGUSR2, lambda *_: heard.set())
    made = Engine(stall_s=0.0)
    try:
        os.kill(os.getpid(), signal.SIGUSR2)
        assert heard.wait(PATIENCE_S)
        assert made.told == []
    finally:
        made.dog.stop()
        signal.signal(signal.SIGUSR2, before)


def test_a_dump_that_fails_is_tried_again_and_ends_nothing() -> None:
    tries = list[str]()

    def fails(why: str) -> None:
        tries.append(why)
        raise RuntimeError("dictionary changed size during iteration")

    clock = Clock()
    dog = Watchdog(lambda: 0, lambda: 1, fails, SHORT_S, clock)
    dog.start()
    assert comes_true(lambda: clock.num_reads >= 1)
    clock.now_s += 1
    assert comes_true(lambda: len(tries) >= 3)
    assert clock.is_read(3)

    assert len(tries) == 3
    assert dog._thread.is_alive()
    dog.stop()
    dog._thread.join(PATIENCE_S)
    assert not dog._thread.is_alive()
    assert signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("5", 5.0),
        ("0", 0.0),
        ("-1", DEFAULT_STALL_S),
        ("inf", DEFAULT_STALL_S),
        ("x", DEFAULT_STALL_S),
    ],
)
def test_how_long_is_a_stall_is_told_by_the_environment(
    told: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STALL, told)

    assert stall_seconds() == seconds
