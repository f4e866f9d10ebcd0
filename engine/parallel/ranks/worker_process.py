"""A worker in a process of its own; `processes` starts it, and gives it its orders on stdin.

It says that it is ready, gets its orders as one line of JSON, and says why it left. Its end is tied
to stdin: when the head closes that, or is no more, the worker closes its journal and goes, wherever
it is. Ctrl-C is the head's business. Its argument is the folder that the head made for the ranks.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import torch

from stepscope.engine.clock import WallClock
from stepscope.engine.parallel.costs import Costs
from stepscope.engine.parallel.links.gloo import GlooTransport
from stepscope.engine.parallel.rank_config import ParallelConfig
from stepscope.engine.parallel.ranks.member import Journal, Member, no_time, serve

STDIN, STDOUT = 0, 1
ENDING = threading.Lock()
READY, LEFT = "stepscope worker ready", "stepscope worker left: "


def main() -> None:
    """Work until the head shuts the worker down, or is no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    _say(READY)
    orders = json.loads(_line())
    with ExitStack() as journals:
        threading.Thread(target=_end_with_the_head, args=(journals,), daemon=True).start()
        why = _work(orders, ParallelConfig.from_dict(orders["config"]), journals)
        try:
            _say(LEFT + why.replace("\n", " "))
        except BrokenPipeError:
            _go(journals)


def _work(orders: dict[str, Any], config: ParallelConfig, journals: ExitStack) -> str:
    rank, clock, recorder = orders["rank"], WallClock(), None
    clock.epoch_ns = orders["epoch_ns"]
    if orders["journal"]:
        journal = Journal.from_dict(orders["journal"])
        recorder = journal.recorder(rank, {"parallel": config.as_dict()})
        journals.enter_context(recorder)
    meeting_file, timeout_s = Path(orders["meeting_file"]), orders["timeout_s"]
    transport = GlooTransport(meeting_file, rank, config.world_size, timeout_s)
    member = Member(config, transport, clock, recorder, no_time, Costs())
    if orders["held_file"] is None:
        return serve(member)
    with Path(orders["held_file"]).open("w", encoding="utf-8") as held_file:
        return serve(member, lambda held: print(json.dumps(held), file=held_file, flush=True))


def _line() -> bytes:
    """Return a line of stdin, read past Python's buffer: a thread waits on it when we end."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(STDIN, 1)
        if not piece:
            _go(ExitStack())
        line += piece
    return line


def _end_with_the_head(journals: ExitStack) -> None:
    while os.read(STDIN, 1):
        pass
    _go(journals)


def _go(journals: ExitStack) -> NoReturn:
    """End here and now, and leave nothing behind that the head cannot take away any more."""
    with ENDING:
        journals.close()
        shutil.rmtree(sys.argv[1], ignore_errors=True)
        os._exit(1)


def _say(line: str) -> None:
    os.write(STDOUT, f"{line}\n".encode())


if __name__ == "__main__":
    main()
