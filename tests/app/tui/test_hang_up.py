"""A terminal that goes away ends the TUI, whoever is told of it."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.tiers import sampled

pytestmark = pytest.mark.skipif(not hasattr(select, "poll"), reason="this system has no poll")
DRAWN = b"\x1b[?1049h"
"""What takes the screen."""
PATIENCE_S = 120


IGNORING = ("sh", "-c", "trap '' HUP; exec \"$@\"", "sh")


@pytest.mark.parametrize("first", sampled([(), IGNORING], [IGNORING]))
def test_a_terminal_that_is_gone_ends_the_tui_where_no_signal_reaches_it(
    sample_traces: Path, first: tuple[str, ...]
) -> None:
    keyboard, terminal = pty.openpty()
    trace = sample_traces / "vllm_crowd.trace"
    command = [*first, sys.executable, "-m", "stepscope.app", "tui", str(trace)]
    # In a session of its own, and not the one that the terminal controls: nothing is sent to it.
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    ) as process:
        os.close(terminal)
        try:
            drawn = b""
            while DRAWN not in drawn:
                drawn += os.read(keyboard, 1 << 16)

            os.close(keyboard)

            assert process.wait(PATIENCE_S) == -signal.SIGHUP
        finally:
            process.kill()


MODES = (b"1049", b"1000", b"1003", b"1006", b"1004", b"2004")
"""The alternate screen, reports of the mouse and of the focus, pastes in brackets."""


def _is_on(written: bytes, mode: bytes) -> bool:
    return written.rfind(b"\x1b[?" + mode + b"h") > written.rfind(b"\x1b[?" + mode + b"l")


CONTROLLED = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "stepscope.app", "tui", sys.argv[1]])
"""
"""Takes the terminal as a shell's job in the foreground has it."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_ends_the_tui_gives_the_terminal_back(
    sample_traces: Path, number: signal.Signals, tmp_path: Path
) -> None:
    keyboard, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    command = [sys.executable, "-c", CONTROLLED, str(sample_traces / "vllm_crowd.trace")]
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        cwd=tmp_path,
    ) as process:  # fmt: skip
        try:
            written = b""
            while not all(_is_on(written, mode) for mode in MODES):
                written += os.read(keyboard, 1 << 16)
            assert termios.tcgetattr(terminal) != before

            process.send_signal(number)

            deadline = time.monotonic() + PATIENCE_S
            while process.poll() is None or select.select([keyboard], [], [], 0)[0]:
                assert time.monotonic() < deadline, "the TUI does not end"
                if select.select([keyboard], [], [], 0.01)[0]:
                    written += os.read(keyboard, 1 << 16)
        finally:
            process.kill()
    after = termios.tcgetattr(terminal)
    os.close(terminal)
    os.close(keyboard)
    assert not any(_is_on(written, mode) for mode in MODES)
    assert _is_on(written, b"25")
    assert process.returncode == -number
    assert after == before


BUSY = """
import hashlib, sys, threading
from stepscope.app.tui import hang_up
sys.setswitchinterval(100)
begins = threading.Lock()
begins.acquire()

def say():
    with begins:
        print("busy", flush=True)

hang_up.GRACE_S = 0.0
hang_up.end_with_terminal(sys.stdin.fileno())
threading.Thread(target=say, daemon=True).start()
begins.release()
hashlib.pbkdf2_hmac("sha256", b"", b"", (1 << 31) - 1)
"""
"""A main thread that sees no signal for minutes, as in the middle of a query.

The other thread gets Python's lock when the call in C releases it, and not before.
"""


def test_a_signal_ends_the_tui_where_its_main_thread_is_busy() -> None:
    keyboard, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=terminal, stdout=subprocess.PIPE, stderr=terminal
    ) as process:
        os.close(terminal)
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"busy\n"
            process.terminate()
            assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
        finally:
            process.kill()
    assert b"\x1b[?1049l\x1b[?25h" in os.read(keyboard, 1 << 16)
    os.close(keyboard)
