"""The commands of the debugger: a line in GROUPS, or in a group's tuple, makes one.

Help, completion and the page of the commands follow from these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

from stepscope.app.debug.commands.answer import Answer, Command, Group
from stepscope.app.debug.commands.asking import ASKING
from stepscope.app.debug.commands.helping import helping
from stepscope.app.debug.commands.looking import LOOKING
from stepscope.app.debug.commands.moving import MOVING
from stepscope.app.debug.commands.stopping import STOPPING
from stepscope.app.debug.debugger import Debugger
from stepscope.ingest.errors import ConfigError

_OTHERS = (MOVING, STOPPING, LOOKING, ASKING)
GROUPS: tuple[Group, ...] = (*_OTHERS, helping(_OTHERS))
COMMANDS: Mapping[str, Command] = {
    name: command
    for group in GROUPS
    for command in group.commands
    for name in (command.name, *command.aliases)
}
"""Every command by its name and by its aliases."""
_LINE = re.compile(r"(?P<name>[A-Za-z-]+|\?)\s*(?P<words>.*)", re.DOTALL)


def run(debugger: Debugger, line: str) -> Answer:
    """Run a line as it was typed; an empty one and a comment do nothing.

    Raises StepscopeError: ConfigError for what is no command, or cannot be done.
    """
    line = line.strip()
    if not line or line.startswith("#"):
        return Answer()
    found = _LINE.fullmatch(line)
    name = found["name"] if found else line
    if found is None or name not in COMMANDS:
        close = get_close_matches(name, COMMANDS, n=3)
        todo = f"did you mean {' or '.join(close)}?" if close else "help lists the commands"
        raise ConfigError(f"no command {name!r}", todo=todo)
    return COMMANDS[name].run(debugger, found["words"].strip())


def name_of(line: str) -> str | None:
    """The name of the command that a line calls, by whatever alias; None where it calls none."""
    found = _LINE.fullmatch(line.strip())
    command = COMMANDS.get(found["name"]) if found else None
    return command.name if command else None
