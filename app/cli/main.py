"""Entry point: finds the subcommand, imports only it, and turns every failure into one line.

Exit codes: 0 fine, 1 findings at or above `--fail-on`, or of `record` a run that was given up,
2 wrong usage or configuration, 3 unreadable trace, 4 a replay that diverged, 5 a run that is not
replayed, 6 an engine that cannot replay it, 7 an endpoint that did not take what was sent, 70 a bug
of ours, 130 interrupted.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
from collections.abc import Sequence

import click

from stepscope.app.cli.complaints import complain
from stepscope.app.cli.given import refuse_repeats
from stepscope.app.cli.standard_streams import (
    open_closed_streams,
    stdout_failure,
    unwritable_stdout,
    watch_streams,
)
from stepscope.app.ending import Ended, end_by_signals, leave
from stepscope.app.failures import told

COMMANDS: dict[str, str] = {
    "record": "Run the reference engine and record it.",
    "listen": "Capture what engines publish while they run.",
    "info": "Show what is in a trace, and what was inferred, dropped or recovered.",
    "check": "Find conflicts in traces; exit 1 when there are any.",
    "blame": "Split the latency of each request into its causes.",
    "why": "Follow a wait from who waits to the root.",
    "diff": "Find the first step at which two traces diverge.",
    "summary": "Sum traces up as rows of a table.",
    "fleet": "Import, check and sum up thousands of traces into an archive.",
    "trend": "Show metrics over many runs, and where they change.",
    "replay": "Run a recorded run again, on a real scheduler or the reference engine.",
    "explain": "Show the page of a rule.",
    "rules": "List the rules, or begin a new one.",
    "open": "Look at a trace in the front that fits, or list those opened last.",
    "tui": "Look at a trace in the terminal.",
    "web": "Look at a trace in the browser.",
    "report": "Write what is in one trace or two as a page to send on.",
    "debug": "Go through a run step by step, forward and back.",
    "dap": "Debug a run from an editor, by the Debug Adapter Protocol.",
    "mcp": "Let an assistant ask about traces, by the Model Context Protocol.",
    "skill": "Write a skill file that teaches an assistant this command line.",
    "sql": "Run an SQL query over the tables of a trace.",
    "convert": "Convert a trace to another format.",
    "otel": "Send spans and findings by OpenTelemetry, or write them to a file.",
    "merge": "Merge a profile's kernels into the steps of a recording.",
    "close": "Finish the recording of an engine that died.",
    "vllm": "Check that an installed vLLM can be recorded.",
    "sglang": "Check that an installed SGLang can be recorded.",
    "cache": "Show or clear the cache of files that were read.",
}
"""What `--help` says of each subcommand, in order; `commands/<name>.py` has it by its name."""

COLLECT_EVERY = 10_000
"""Objects made before garbage is looked for: with 700, as Python has it, a command spends a tenth
of its time on going through what it has imported, and that is no garbage.
"""


class LazyGroup(click.Group):
    """A group that imports a subcommand's module only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the subcommands in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module behind `cmd_name` and return its command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"stepscope.app.cli.commands.{cmd_name}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and refuse what is given to it twice."""
        name, command, words = super().resolve_command(ctx, args)
        if command is not None:
            refuse_repeats(command, click.Context(command, ctx, name), words)
        return name, command, words

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from stepscope.app.own_version import own_version

    click.echo(f"stepscope {own_version()}")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="TRACE is any supported file or directory. Start with:\n\n\b\n"
    "stepscope record mix-admission -o mix.trace && stepscope tui mix.trace",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version,
    help="Show the version and exit.",
)  # fmt: skip
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Record, check and look at what an LLM-inference scheduler decides, step by step."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; no traceback reaches a user.

    Without arguments of a caller the process is the command's own.
    """
    open_closed_streams()
    if argv is None:
        gc.set_threshold(COLLECT_EVERY)
        atexit.register(gc.freeze)  # what goes with the process need not be gone through
        watch_streams()
        end_by_signals()
    try:
        code = cli.main(args=argv, prog_name="stepscope", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Ended as ended:
        code = _complain(str(ended), ended.exit_code)
        return leave(code) if argv is None else code
    except (KeyboardInterrupt, click.Abort):
        return _complain("interrupted", 130)
    except (OSError, SystemExit) as error:
        return _after_failed_write(error)
    except Exception as error:
        if os.environ.get("STEPSCOPE_DEBUG"):
            raise
        return _complain(*told(error))
    return code if isinstance(code, int) else 0


def _after_failed_write(error: OSError | SystemExit) -> int:
    """Return the exit code where a write failed; click itself exits where a pipe is closed."""
    failure = stdout_failure()
    if failure is None and isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        if os.environ.get("STEPSCOPE_DEBUG"):
            raise error
        return _complain(*told(error))
    if failure is None or isinstance(failure, BrokenPipeError):
        return 0  # the reader (`head`, `less`) has gone
    return _complain(*told(unwritable_stdout(failure)))


def _complain(message: str, code: int) -> int:
    complain(message)
    return code
