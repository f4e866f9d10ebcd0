"""Every known bug of the engine, by name; nothing is wrong unless its name is switched on.

Each scenario's are in a file of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from stepscope.engine.faults.device import DEVICE_FAULTS
from stepscope.engine.faults.ep import EP_FAULTS
from stepscope.engine.faults.fault import Fault
from stepscope.engine.faults.fcfs import FCFS_FAULTS
from stepscope.engine.faults.mixed import MIXED_FAULTS, SPLIT_FAULTS
from stepscope.engine.faults.queue import QUEUE_FAULTS
from stepscope.engine.faults.slots import SLOT_FAULTS
from stepscope.ingest.errors import ConfigError

__all__ = ["EP_FAULTS", "FAULTS", "SPLIT_FAULTS", "Fault", "check_faults", "fault", "faults_of"]

FAULTS: tuple[Fault, ...] = (
    *FCFS_FAULTS, *SLOT_FAULTS, *MIXED_FAULTS, *SPLIT_FAULTS, *DEVICE_FAULTS, *EP_FAULTS,
    *QUEUE_FAULTS,
)  # fmt: skip
_NAMES = {fault.name: fault for fault in FAULTS}


def fault(name: str) -> Fault:
    """Return the fault of that name; ConfigError, with near matches, when there is none."""
    if name not in _NAMES:
        near = get_close_matches(name, _NAMES, n=3) or sorted(_NAMES)
        raise ConfigError(f"no fault is called {name!r}", todo=f"try {', '.join(near)}")
    return _NAMES[name]


def faults_of(scenario: str) -> tuple[Fault, ...]:
    """Return the faults that `scenario` can show."""
    return tuple(each for each in FAULTS if each.scenario == scenario)


def check_faults(names: Iterable[str]) -> None:
    """Raise ConfigError, with near matches, for a name that is not a fault."""
    for name in names:
        fault(name)
