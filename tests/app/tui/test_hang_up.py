"""A terminal that goes away ends the TUI, whoever is told of it."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
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
