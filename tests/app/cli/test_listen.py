"""`stepscope listen`: what engines publish on loopback becomes a trace, and losses are told."""

from __future__ import annotations

import os
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.errors import TraceError
from stepscope.ingest.live.captures import Captures
from stepscope.ingest.live.subscriber import Patience, listen
from stepscope.ingest.trace import Trace
from tests.app.cli.conftest import Command, Run
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.ingest.readers.forward_pass.test_reader import pack, record
from tests.ingest.readers.kv_events.test_reader import stored
from tests.looped import looped
from tests.tiers import slow

zmq = pytest.importorskip("zmq", reason="pyzmq is not installed")
PATIENCE_S = 180
"""A machine may be busy with other things; nothing here waits this long."""


@dataclass
class Publisher:
    """An engine that publishes on loopback once somebody listens."""

    socket: Any
    address: str
    listeners: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """Wait until somebody has subscribed."""
        assert self.socket.poll(PATIENCE_S * 1000), "nobody listens"
        self.socket.recv()

    def send(self, said: Any, seq: int, topic: bytes = b"") -> None:
        self.socket.send_multipart((topic, struct.pack(">q", seq), pack(said)))


@contextmanager
def publishing() -> Iterator[Publisher]:
    with zmq.Context() as context, context.socket(zmq.XPUB) as socket:
        socket.linger = 2_000
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        yield Publisher(socket, f"tcp://127.0.0.1:{port}")


@contextmanager
def listening(out: Path, *words: object) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, as Ctrl-C would end it."""
    command = [sys.executable, "-m", "stepscope.app", "listen", "-o", str(out), *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> Run:
    _, err = process.communicate(timeout=PATIENCE_S)
    return Run(process.returncode, "", err)


@slow
def test_iterations_are_steps_of_when_they_came_and_it_ends_with_the_publisher(
    tmp_path: Path,
) -> None:
    out, began = tmp_path / "run.trace", time.time_ns()
    with publishing() as engine, listening(out, engine.address) as process:
        engine.wait()
        for number in range(5):
            engine.send(record(number), number)
        engine.socket.close()
        run = ended(process)

    assert run.code == 0, run.err
    assert run.err == f"wrote {out}: 5 messages came, until the publisher is gone\n"
    trace = Trace.open(out)
    assert rows(trace, "steps", "step", "kind", "num_waiting") == [
        (number, "mixed", 3) for number in range(5)
    ]
    ends = [ts_ns + dur_ns for ts_ns, dur_ns in rows(trace, "steps", "ts_ns", "dur_ns")]
    assert began <= min(ends) <= max(ends) <= time.time_ns()
    assert "5 messages came, until the publisher is gone" in report_of(trace).notes
    assert list(tmp_path.iterdir()) == [out]


@slow
def test_what_was_lost_is_said_in_the_manifest(tmp_path: Path) -> None:
    out = tmp_path / "run.trace"
    with publishing() as engine, listening(out, engine.address) as process:
        engine.wait()
        for number in (7, 8, 12):
            engine.send(record(number), number)
        engine.socket.close()
        run = ended(process)

    assert run.code == 0, run.err
    assert Trace.open(out).manifest.dropped == {"steps": 3}


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_it_ends_in_time_while_messages_come_without_a_pause(tmp_path: Path) -> None:
    clock = Clock()
    numbers = count()
    with publishing() as engine, Captures(tmp_path) as captures:

        def publish() -> bool:
            clock.now_s += 1
            if not (number := next(numbers)):
                engine.wait()
            engine.send(record(number), number)
            return False

        heard = listen(
            [engine.address], captures.file_of, Patience(seconds=10), publish, clock=clock
        )

    assert heard.ended == "the time was over"
    assert heard.num_messages >= 9
    assert next(numbers) == 11


def test_it_ends_when_nothing_has_come_for_a_while(tmp_path: Path) -> None:
    clock = Clock()
    with publishing() as engine, Captures(tmp_path) as captures:
        came: list[bytes] = []

        def file_of(payload: bytes) -> FileIO:
            came.append(payload)
            return captures.file_of(payload)

        def publish_twice() -> bool:
            if not came:
                engine.wait()
            if len(came) < 2:
                engine.send(record(len(came)), len(came))
            clock.now_s += 2 if len(came) < 2 else 4
            return False

        heard = listen([engine.address], file_of, Patience(idle=3), publish_twice, clock=clock)

    assert (heard.ended, heard.num_messages) == ("nothing came any more", 2)


def test_what_came_before_a_file_could_not_grow_is_kept_and_it_is_said(tmp_path: Path) -> None:
    out = tmp_path / "run.trace"
    with publishing() as engine, listening(out, engine.address) as process:
        engine.wait()
        # As a full disk, for this process alone: Python ignores the signal that would end it.
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (60_000, 60_000))
        for number in range(2_000):
            engine.send(record(number), number)
        run = ended(process)

    assert run.code == 0, run.err
    assert "until the next could not be written: File too large" in run.err
    steps = Trace.open(out).num_rows("steps")
    assert steps > 50
    assert f" {steps} messages came" in run.err


@slow
@looped("number", [signal.SIGINT, signal.SIGTERM])
def test_what_came_before_it_was_interrupted_is_kept(tmp_path: Path, number: int) -> None:
    out = tmp_path / "run.trace"
    with publishing() as engine, listening(out, engine.address) as process:
        engine.wait()
        engine.send(record(0), 0)
        wait_for_capture(tmp_path)
        os.kill(process.pid, number)
        run = ended(process)

    assert (run.code, run.err) == (0, f"wrote {out}: 1 message came, until it was stopped\n")
    assert Trace.open(out).num_rows("steps") == 1


def wait_for_capture(folder: Path) -> None:
    """Wait until the first message is in the file."""
    last_s = time.monotonic() + PATIENCE_S
    while not any(file.stat().st_size for file in folder.rglob("*.msgpack")):
        assert time.monotonic() < last_s, "nothing was captured"
        time.sleep(0.01)


@slow
def test_data_parallel_ranks_and_kv_events_are_one_trace(tmp_path: Path) -> None:
    out = tmp_path / "run.trace"
    with publishing() as first, publishing() as second, publishing() as cache:
        addresses = [each.address for each in (first, second, cache)]
        with listening(out, *addresses) as process:
            for each in (first, second, cache):
                each.wait()
            first.send(record(0), 0)
            second.send(record(0, dp_rank=1), 0)
            cache.send([time.time(), [stored(1, 2)], 0], 0, b"kv-events")
            cache.send([time.time(), [], 0], 1, b"kv-events")
            for each in (first, second, cache):
                each.socket.close()
            run = ended(process)

    assert run.code == 0, run.err
    trace = Trace.open(out)
    assert rows(trace, "steps", "rank") == [0, 1]
    assert rows(trace, "allocations", "rank", "op") == [(0, "cache"), (0, "cache")]
    assert report_of(trace).read["batches of KV events"] == 2
    assert trace.manifest.producer == "forward pass metrics and KV cache events"


@slow
def test_idle_is_counted_from_the_last_message(tmp_path: Path) -> None:
    out = tmp_path / "run.trace"
    with publishing() as engine, listening(out, "--idle", 0.3, engine.address) as process:
        engine.wait()
        engine.send(record(0), 0)
        run = ended(process)

    assert run.code == 0, run.err
    assert run.err.endswith("1 message came, until nothing came any more\n")


@pytest.mark.parametrize(
    ("option", "why"),
    [("--wait", "the wait for the first one was over"), ("--seconds", "the time was over")],
)
def test_where_nothing_comes_one_line_says_so_and_nothing_is_written(
    option: str, why: str, tmp_path: Path
) -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as mute:
        port = mute.bind_to_random_port("tcp://127.0.0.1")
        address = f"tcp://127.0.0.1:{port}"
        with listening(tmp_path / "run.trace", option, 0.3, address) as process:
            run = ended(process)

    assert run.code == 3
    assert run.err == f"stepscope: {address}: no message came: {why}\n"
    assert list(tmp_path.iterdir()) == []


def test_messages_that_are_none_of_ours_are_refused_and_where_they_are_is_told(
    tmp_path: Path,
) -> None:
    with publishing() as engine, listening(tmp_path / "run.trace", engine.address) as process:
        engine.wait()
        engine.send({"temperature": 3}, 0)
        engine.socket.send_multipart([b"a", b"b", b"c", b"d"])
        engine.socket.close()
        run = ended(process)

    assert run.code == 3
    assert "no forward pass in it; what came is in " in run.err
    assert run.err.count("\n") == 1
    assert len(list(tmp_path.rglob("*.msgpack"))) == 2


LARGE = b"x" * 64_000_000


def test_a_message_over_the_limit_is_left_out_and_the_next_is_captured(tmp_path: Path) -> None:
    out = tmp_path / "run.trace"
    with publishing() as engine, listening(out, engine.address) as process:
        engine.wait()
        engine.send(LARGE, 0)
        engine.send(record(0), 1)
        engine.socket.close()
        run = ended(process)

    assert run.code == 0, run.err
    assert Trace.open(out).num_rows("steps") == 1
    assert "1 message came, 1 of more than 4,194,304 bytes left out" in run.err


def test_where_all_messages_are_over_the_limit_the_error_says_how_to_raise_it(
    tmp_path: Path,
) -> None:
    with publishing() as engine, listening(tmp_path / "run.trace", engine.address) as process:
        engine.wait()
        engine.send(LARGE, 0)
        engine.socket.close()
        run = ended(process)

    assert run.code == 3
    assert "1 of more than 4,194,304 bytes left out (--max message=N raises it)" in run.err
    assert list(tmp_path.iterdir()) == []


def test_without_pyzmq_one_line_says_what_to_install(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    (hidden / "zmq").mkdir(parents=True)
    (hidden / "zmq" / "__init__.py").write_text("raise ImportError('hidden')\n")
    run = subprocess.run(
        [sys.executable, "-m", "stepscope.app", "listen", "tcp://127.0.0.1:1", "-o",
         str(tmp_path / "run.trace")],
        env={**os.environ, "PYTHONPATH": str(hidden)}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert run.returncode == 2
    assert run.stderr == "stepscope: listening needs pyzmq; pip install 'stepscope[live]'\n"


def test_what_cannot_be_read_of_one_format_costs_nothing_of_the_other(tmp_path: Path) -> None:
    with Captures(tmp_path) as captures:
        for payload in (pack(record(0)), pack([1, 2, 3])):
            captures.file_of(payload).write(pack([b"", 0, payload, 1]))

    trace = captures.trace("both", "2 messages came")

    assert trace.num_rows("steps") == 1
    assert report_of(trace).notes[1] == "not read: no batch of KV events in it"


def test_what_can_be_read_of_no_format_is_said_in_one_line(tmp_path: Path) -> None:
    with Captures(tmp_path) as captures:
        captures.file_of(pack([1])).write(pack([b"", 0, pack([1]), 1]))

    with pytest.raises(TraceError, match="no batch of KV events in it"):
        captures.trace("none", "1 message came")


@looped("option", ["--wait", "--seconds", "--idle"])
def test_a_duration_that_is_no_number_is_refused_as_it_would_never_be_over(
    option: str, tmp_path: Path, stepscope: Command
) -> None:
    run = stepscope("listen", "tcp://127.0.0.1:20380", "-o", tmp_path / "x.trace", option, "nan")

    assert run.code == 2
    assert "'nan' is not a number" in run.err
