"""`vllm serve` as users start it, and clients who measure what they get by their own clock."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.vllm.runs import ROOT, Run, engine_settings, environment, profiler

Row = dict[str, Any]
START_S, STOP_S = 400, 120
FLAGS = {
    "max_model_len": "--max-model-len",
    "block_size": "--block-size",
    "num_gpu_blocks_override": "--num-gpu-blocks-override",
    "max_num_seqs": "--max-num-seqs",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "dtype": "--dtype",
}


@dataclass
class Server:
    """A server that answers; `started` is the process that the user would have started."""

    started: subprocess.Popen[bytes]
    port: int
    folder: Path
    model: Path

    @property
    def run(self) -> Run:
        """What it has left so far."""
        return Run(self.folder)

    @property
    def engine_pids(self) -> list[int]:
        """The processes that have a scheduler, by the witness's files."""
        return sorted(int(path.name.partition(".")[0]) for path in self._truth())

    @property
    def num_steps(self) -> int:
        """How many lines the witness has written."""
        return sum(path.read_bytes().count(b"\n") for path in self._truth())

    def ask(self, number: int, prompt: str, max_tokens: int) -> Row:
        """Ask for tokens as they come: when it was sent, when the first and the last came."""
        (told,) = self.burst([{"number": number, "prompt": prompt, "max_tokens": max_tokens}])
        return told

    def burst(self, asked: Sequence[Row]) -> list[Row]:
        """Ask all at once; a `number` of each, and what the API takes."""
        rows = [{"model": str(self.model), **row} for row in asked]
        done = subprocess.run(
            [sys.executable, "-m", "tests.vllm.running.clients", str(self.port)], cwd=ROOT,
            input=json.dumps(rows).encode(), capture_output=True, check=True,
        )  # fmt: skip
        return list(json.loads(done.stdout))

    def post(self, path: str) -> int:
        """Call something that needs no body; its status."""
        return _status("POST", self.port, path, STOP_S)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal to who was started, as a terminal or a supervisor does; its exit code."""
        self.started.send_signal(number)
        return self.started.wait(STOP_S)

    def _truth(self) -> list[Path]:
        return sorted((self.folder / "truth").glob("*.truth.jsonl"))


@contextmanager
def serving(
    model: Path, folder: Path, *arguments: str, is_async: bool = False, profile: bool = False,
    prefix: Sequence[str] = (), env: dict[str, str] | None = None, **engine: Any,
) -> Iterator[Server]:  # fmt: skip
    """Start `vllm serve` and wait until it answers; what is left of it at the end is killed."""
    folder.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    command = [
        *prefix, sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", str(model),
        "--port", str(port), "--enforce-eager", *_flags({**engine_settings(), **engine}),
        "--async-scheduling" if is_async else "--no-async-scheduling", *arguments,
    ]  # fmt: skip
    if profile:
        command += ["--profiler-config", json.dumps(profiler(folder))]
    with (folder / "output.txt").open("wb") as output:
        started = subprocess.Popen(
            command, env={**environment(folder, is_async=is_async), **(env or {})}, cwd=ROOT,
            stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
        try:
            _wait(started, port, folder)
            yield Server(started, port, folder, model)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def _flags(engine: Row) -> list[str]:
    flags = [word for name, flag in FLAGS.items() for word in (flag, str(engine[name]))]
    cached = (
        "--enable-prefix-caching"
        if engine["enable_prefix_caching"]
        else "--no-enable-prefix-caching"
    )
    return [*flags, cached]


def _wait(started: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        assert started.poll() is None, (folder / "output.txt").read_text(errors="replace")[-6000:]
        with suppress(OSError, http.client.HTTPException):
            if _status("GET", port, "/health", 5) == 200:
                return
        time.sleep(0.5)
    raise AssertionError((folder / "output.txt").read_text(errors="replace")[-6000:])


def _status(method: str, port: int, path: str, seconds: float) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request(method, path)
        with connection.getresponse() as answer:
            answer.read()
            return answer.status
    finally:
        connection.close()


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])
