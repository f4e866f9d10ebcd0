"""A prompt in a terminal: completion, history, and what Ctrl-C and Ctrl-D are for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.output import Output

from stepscope.app.cli.prompt.loop import Loop
from stepscope.app.debug.commands.completing import completions
from stepscope.app.debug.commands.where_it_is import prompt_text
from stepscope.app.debug.debugger import Debugger
from stepscope.app.kept.state_folder import state_folder
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.storage.private_folder import private_folder


class Words(Completer):
    """What may follow, of the trace that is looked at."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterable[Completion]:
        """Complete what stands before the cursor; nothing where that cannot be read."""
        with suppress(StepscopeError):
            for each in completions(self._debugger, document.text_before_cursor):
                yield Completion(each.word, -each.replaces, display_meta=each.meaning)


class Kept(FileHistory):
    """Lines that were typed, at earlier prompts too; a full disk costs their memory alone."""

    def store_string(self, string: str) -> None:
        """Keep a line."""
        with suppress(OSError):
            super().store_string(string)


def history() -> History:
    """The history in the user's folder for states; without one, of this prompt alone."""
    folder = state_folder()
    if folder is None:
        return InMemoryHistory()
    try:
        private_folder(folder)
        file: Path = folder / "debug_history"
        file.touch(mode=0o600)
        file.read_bytes()
    except OSError:
        return InMemoryHistory()
    return Kept(str(file))


def typed_lines(
    debugger: Debugger, source: Input | None = None, output: Output | None = None
) -> Iterator[str]:
    """Lines as they are typed, until Ctrl-D on an empty one; Ctrl-C drops what was begun."""
    session: PromptSession[str] = PromptSession(
        history=history(), completer=ThreadedCompleter(Words(debugger)),
        complete_while_typing=False, enable_history_search=True,
        auto_suggest=AutoSuggestFromHistory(), input=source, output=output,
    )  # fmt: skip
    while True:
        try:
            yield session.prompt(prompt_text(debugger))
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def converse(loop: Loop, source: Input | None = None, output: Output | None = None) -> None:
    """Ask and answer until somebody leaves."""
    for line in typed_lines(loop.debugger, source, output):
        loop.run_typed(line)
        if loop.has_ended:
            return
