"""A process from which `stepscope` is forked, so that hundreds of commands start up but once.

    with ready_commands() as folder:  # first on PATH, a `stepscope` that costs no imports

A page of transcripts runs some five hundred commands, and most of what each cost was to import
Polars and our own modules. Here one process has imported them, and has run nothing. The `stepscope`
in the folder hands it what a new process gets from a shell: arguments, folder, environment, and its
own standard input, output and error. The server forks, and the fork runs that one command as the
console script does, to the end of its interpreter: threads are joined, exit handlers run. So what
runs is still a process of its own in its own folder, and nothing that it does is seen by the next
command. It shares with its siblings only what importing left behind, Polars' pools not among it:
they are started by the first query.

The server and what it runs are killed when the `with` ends. It also ends when its standard input
does, hence when whoever started it is killed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import stepscope.analyzers.check.registry  # commands import these two when they run
import stepscope.engine.scenarios  # noqa: F401 - the same
from stepscope.app.cli.main import COMMANDS
from stepscope.app.cli.main import main as run_command

ROOT = Path(__file__).resolve().parents[2]
SOCKET = "socket"
LISTENS = b"listening\n"
CLIENT = """#!{python} -IS
import json, os, socket, sys

server = socket.socket(socket.AF_UNIX)
server.connect(os.path.join(os.path.dirname(os.path.abspath(__file__)), {socket!r}))
call = {{"argv": sys.argv, "cwd": os.getcwd(), "env": dict(os.environ)}}
socket.send_fds(server, [b"\\n"], [0, 1, 2])
server.sendall(json.dumps(call).encode())
server.shutdown(socket.SHUT_WR)
code = server.recv(16)
sys.exit(int(code) if code else "the server of commands has gone")
"""


@contextmanager
def ready_commands() -> Iterator[Path]:
    """Yield a folder with a `stepscope` in it that is forked from one process, for as long."""
    with tempfile.TemporaryDirectory(prefix="stepscope-") as name:
        folder = Path(name)
        client = folder / "stepscope"
        client.write_text(CLIENT.format(python=sys.executable, socket=SOCKET), encoding="utf-8")
        client.chmod(0o755)
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.docs.command_server", str(folder / SOCKET)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        with server:
            try:
                assert server.stdout is not None
                assert server.stdout.readline() == LISTENS
                yield folder
            finally:
                os.killpg(server.pid, signal.SIGKILL)  # with a command that hangs, if there is one


def main(path: str) -> NoReturn:
    """Listen at `path`, and run a command for each connection, in a process of its own."""
    for name in COMMANDS:
        importlib.import_module(f"stepscope.app.cli.commands.{name}")
    gc.freeze()  # or the first collection of each fork would touch, and copy, all of it
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        os.write(1, LISTENS)
        while (connection := _next(listener)) is not None:
            with connection:
                if os.fork() == 0:
                    listener.close()
                    _attend(connection)
    sys.exit()


def _next(listener: socket.socket) -> socket.socket | None:
    """Return the next connection, None when whoever started the server has gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who attend
    ready, _, _ = select.select([0, listener.fileno()], [], [])
    return None if 0 in ready else listener.accept()[0]


def _attend(connection: socket.socket) -> NoReturn:
    """Run the command of a connection in a child, and say with which code it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as asked:
        call = json.load(asked)
    child = os.fork()
    if child == 0:
        connection.close()
        _become(call["argv"], call["cwd"], call["env"], streams)
        sys.exit(run_command())
    for stream in streams:
        os.close(stream)  # a pipe that the command has closed has no other end here
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(str(code).encode())
    os._exit(0)


def _become(argv: list[str], folder: str, env: dict[str, str], streams: list[int]) -> None:
    """Take over what the command was given: arguments, folder, environment, streams."""
    sys.argv = argv
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)


if __name__ == "__main__":
    main(sys.argv[1])
