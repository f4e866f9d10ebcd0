"""Every command that serves or stays ends by a signal or a closed pipe, and leaves nothing.

Real processes: each is sent its signal when it has said, or done, what shows that it serves.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from tests.conftest import ROOT
from tests.tiers import sampled

TRACE = ROOT / "sample_traces" / "vllm_crowd.trace"
PATIENCE_S = 180
"""A machine may be busy with other things; nothing here waits this long."""
INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
STDIN, STDOUT = "stdin closed", "stdout closed"
How = signal.Signals | str


@dataclass
class Running:
    """A command in a folder of its own, with its temporary folder in it."""

    process: subprocess.Popen[bytes]
    folder: Path
    screen: int = -1
    written: bytes = b""
    children: list[int] = field(default_factory=list)

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def read_screen(self) -> bool:
        """Read what is drawn; False where the terminal is gone."""
        try:
            drawn = os.read(self.screen, 1 << 16)
        except OSError:
            return False
        self.written += drawn
        return bool(drawn)


def told(running: Running, body: dict[str, Any], *, framed: bool = False) -> None:
    """Send a message to a server that talks over stdin."""
    text = json.dumps(body).encode()
    head = b"Content-Length: %d\r\n\r\n" % len(text) if framed else b""
    running.stdin.write(head + text + (b"" if framed else b"\n"))
    running.stdin.flush()


def until(happened: Callable[[], object]) -> None:
    last_s = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < last_s, "it does not begin"
        time.sleep(0.01)


def says_a_line(running: Running) -> None:
    assert running.stdout.readline()


def says_where_it_listens(running: Running) -> None:
    assert running.process.stderr is not None
    assert running.process.stderr.readline()


def answers_as_mcp(running: Running) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {},
              "clientInfo": {"name": "test", "version": "1"}}  # fmt: skip
    told(running, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
    says_a_line(running)


def answers_as_dap(running: Running) -> None:
    told(running, {"seq": 1, "type": "request", "command": "initialize",
                   "arguments": {"adapterID": "test"}}, framed=True)  # fmt: skip
    says_a_line(running)


def captures(running: Running) -> None:
    until(lambda: [*running.folder.glob(".out.trace.*/*")])


def has_workers(running: Running) -> None:
    until(lambda: children_of(running.process.pid))
    running.children = children_of(running.process.pid)


def draws(running: Running) -> None:
    while b"\x1b[?1049h" not in running.written or b"engine" not in running.written:
        assert running.read_screen()


@dataclass(frozen=True)
class Command:
    """How a command is started, what shows that it serves, and its exit codes.

    `codes` are those that are not 128 + the signal.
    """

    words: tuple[str, ...]
    begins: Callable[[Running], None]
    hows: tuple[How, ...] = (TERM, HUP, INT)
    codes: tuple[tuple[How, int], ...] = ()
    is_on_screen: bool = False


OVER_PIPES = (TERM, HUP, INT, STDIN, STDOUT)
CLOSED = ((STDIN, 0), (STDOUT, 0))
COMMANDS = {
    "web": Command(("web", str(TRACE), "--port", "0"), says_a_line),
    "tui": Command(("tui", str(TRACE), "--page", "timeline"), draws, (TERM, HUP, INT),
                   ((TERM, -TERM), (HUP, -HUP), (INT, -INT)), is_on_screen=True),
    # What came until then is written: that is how a capture ends. Here nothing came.
    "listen": Command(("listen", "tcp://127.0.0.1:9", "-o", "out.trace"), captures,
                      codes=((TERM, 3), (HUP, 3), (INT, 3))),
    "mcp": Command(("mcp", str(TRACE.parent)), answers_as_mcp, OVER_PIPES, CLOSED),
    "mcp --http": Command(("mcp", str(TRACE.parent), "--http"), says_where_it_listens),
    "dap": Command(("dap", str(TRACE)), answers_as_dap, OVER_PIPES, CLOSED),
    "dap --port": Command(("dap", str(TRACE), "--port", "0"), says_where_it_listens),
    "debug": Command(("debug", str(TRACE)), says_a_line, OVER_PIPES, CLOSED),
    "fleet": Command(("fleet", str(TRACE.parent), "--to", "archive", "--workers", "2"),
                     has_workers),
}  # fmt: skip
HOWS: dict[str, How] = {"SIGTERM": TERM, "SIGHUP": HUP, "SIGINT": INT, STDIN: STDIN, STDOUT: STDOUT}
CASES = [
    (name, how) for name, command in COMMANDS.items() for how in HOWS if HOWS[how] in command.hows
]
QUICK = [
    ("web", "SIGTERM"), ("listen", "SIGHUP"), ("mcp", "SIGINT"), ("mcp", STDOUT),
    ("dap", "SIGHUP"), ("debug", "SIGINT"), ("fleet", "SIGTERM"),
]  # fmt: skip


def children_of(process: int) -> list[int]:
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in found.stdout.split()]


def is_alive(process: int) -> bool:
    found = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    )
    return bool(found.stdout.strip()) and not found.stdout.startswith("Z")


@contextmanager
def started(command: Command, folder: Path) -> Iterator[Running]:
    (temporary := folder / "temporary").mkdir()
    home = folder / "home"
    environ = {**os.environ, "TMPDIR": str(temporary), "HOME": str(home), "TERM": "xterm-256color",
               "XDG_CACHE_HOME": str(home), "XDG_STATE_HOME": str(home)}  # fmt: skip
    screen, terminal = pty.openpty() if command.is_on_screen else (-1, subprocess.PIPE)
    with subprocess.Popen(
        [sys.executable, "-m", "stepscope.app", *command.words], stdin=terminal, stdout=terminal,
        stderr=terminal, cwd=folder, env=environ, start_new_session=command.is_on_screen,
    ) as process:  # fmt: skip
        try:
            yield Running(process, folder, screen)
        finally:
            process.kill()
            if command.is_on_screen:
                os.close(terminal)
                os.close(screen)


@pytest.fixture(autouse=True)
def heeds_signals() -> Iterator[None]:
    """Let commands end by signals that the tests themselves may ignore, as under nohup."""
    before = {
        INT: signal.signal(INT, signal.default_int_handler),
        HUP: signal.signal(HUP, signal.SIG_DFL),
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def end(running: Running, how: How) -> None:
    if isinstance(how, signal.Signals):
        running.process.send_signal(how)
    elif how == STDIN:
        running.stdin.close()
    else:
        running.stdout.close()
        if running.process.args[3] == "debug":  # type: ignore[index]  # a list; it has to write
            running.stdin.write(b"state\n")
            running.stdin.flush()


def ended(running: Running) -> tuple[int, str]:
    """The exit code and what was said on stderr, or drawn."""
    if running.screen < 0:
        code = running.process.wait(PATIENCE_S)
        assert running.process.stderr is not None
        return code, running.process.stderr.read().decode()
    last_s = time.monotonic() + PATIENCE_S
    while running.process.poll() is None or select.select([running.screen], [], [], 0)[0]:
        assert time.monotonic() < last_s, "it does not end"
        if select.select([running.screen], [], [], 0.01)[0] and not running.read_screen():
            break
    return running.process.wait(PATIENCE_S), running.written.decode("utf-8", "replace")


@pytest.mark.parametrize("case", sampled(CASES, QUICK), ids=" ".join)
def test_it_ends_with_its_own_code_and_leaves_nothing(
    case: tuple[str, str], tmp_path: Path
) -> None:
    name, how = case[0], HOWS[case[1]]
    command = COMMANDS[name]
    with started(command, tmp_path) as running:
        command.begins(running)

        end(running, how)

        code, said = ended(running)
    expected = 128 + how if isinstance(how, signal.Signals) else 0
    assert code == dict(command.codes).get(how, expected), said
    assert "Traceback" not in said
    assert [*(tmp_path / "temporary").iterdir()] == []
    assert [path for path in tmp_path.rglob("*") if path.name.startswith((".out", "."))] == []
    assert not any(map(is_alive, running.children))
    if command.is_on_screen:
        assert running.written.rfind(b"\x1b[?1049l") > running.written.rfind(b"\x1b[?1049h")
        assert running.written.rfind(b"\x1b[?25h") > running.written.rfind(b"\x1b[?25l")
