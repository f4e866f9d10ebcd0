"""Everything stepscope raises on purpose.

StepscopeError                  one line: what, where, what to do next
├── TraceError                  a trace cannot be read                   exit 3
│   ├── UnknownFormat           no reader recognises the file
│   ├── TruncatedTrace          it ends too early for anything to be kept
│   ├── DamagedPart             a file of a recording is damaged
│   ├── SchemaMismatch          a table is not what the schema says
│   ├── NewerFormat             a newer stepscope wrote it
│   └── LimitExceeded           hostile or absurd size, depth or count
├── NotReplayed                 a recorded run that no replay can repeat   exit 5
├── ReplayFailed                the engine of a replay cannot do it        exit 6
├── NotSent                     an endpoint did not take what was sent     exit 7
├── WriteError                  nothing can be written there             exit 2
│   └── RecordingError          a recording cannot be started there
└── ConfigError                 wrong usage or configuration             exit 2
    ├── QueryError              an SQL query that does not run
    └── MissingExtra            an optional package is not installed
"""

from __future__ import annotations


class StepscopeError(Exception):
    """A failure that a user can act on; `str(error)` is the one line to show."""

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", todo: str = "") -> None:
        self.what = what
        self.where = where
        self.todo = todo
        super().__init__("; ".join(_parts(what, where, todo)))


def _parts(what: str, where: str, todo: str) -> list[str]:
    located = f"{where}: {what}" if where else what
    return [located, todo] if todo else [located]


class TraceError(StepscopeError):
    """A trace cannot be read."""

    exit_code = 3


class UnknownFormat(TraceError):
    """No reader recognises the file."""


class TruncatedTrace(TraceError):
    """The file ends before anything in it can be kept."""


class DamagedPart(TraceError):
    """A file of a recording is damaged; its other files may be whole."""


class SchemaMismatch(TraceError):
    """A table does not have the columns or types of the schema."""


class NewerFormat(TraceError):
    """A newer stepscope wrote the trace, in a format that this one does not know."""


class LimitExceeded(TraceError):
    """The input is larger, deeper or more numerous than its limit allows."""


class WriteError(StepscopeError):
    """A trace or an export cannot be written where it was asked for."""


class RecordingError(WriteError):
    """A recording cannot be started where it was asked for."""


class ConfigError(StepscopeError):
    """The command or configuration asks for something that does not exist."""


class NotReplayed(StepscopeError):
    """No replay can repeat the recorded run, whatever is set."""

    exit_code = 5


class ReplayFailed(StepscopeError):
    """The engine that is installed where a replay was asked for is not there, fails or hangs."""

    exit_code = 6


class NotSent(StepscopeError):
    """What was sent to an endpoint did not come there, or was not taken."""

    exit_code = 7


class QueryError(ConfigError):
    """An SQL query does not parse or does not run."""


class MissingExtra(ConfigError):
    """An optional package is needed and not installed."""
