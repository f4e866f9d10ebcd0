"""What can be asked of a recorded run: how it can be run otherwise, and with which changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stepscope.app.replay.fidelity import SCENARIO, VARIANT, Kind
from stepscope.app.replay.own_engine import is_ours
from stepscope.app.replay.resimulated import told_settings
from stepscope.app.replay.what_if.asked import Asked, asked
from stepscope.engine.runs.rerun import Changes, changed, options_of, scenario_of
from stepscope.engine.runs.scenario import Options, Scenario, settled
from stepscope.engine.scenarios import SCENARIOS, scenario
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace

NOT_TOLD = "not told"


@dataclass(frozen=True, slots=True)
class Choice:
    """One change that the run knows: its `words` as the command takes them, and what is recorded.

    `what` is "variant", "fault" or "setting".
    """

    what: str
    words: str
    recorded: str
    says: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """A run that can be run otherwise: as what, and the scenario, variant and options it has."""

    kind: Kind
    scenario: Scenario
    variant: str
    options: Options

    def listed(self) -> list[Choice]:
        """All that can be chosen: variants, faults that were switched on, settings."""
        recorded = self.variant if self.kind is not Kind.RESIMULATED else ""
        others = [name for name in self.scenario.variants if name != recorded]
        values = settled(self.scenario, self.variant, self.options)
        return [
            *(Choice("variant", f"--variant {name}", recorded or NOT_TOLD) for name in others),
            *(Choice("fault", f"--no-fault {name}", "on") for name in sorted(self.options.faults)),
            *(
                Choice("setting", f"--set {name}={as_text(value)}",
                       self._recorded(name, value), self.scenario.settings[name].help)
                for name, value in values.items()
            ),
        ]  # fmt: skip

    def _recorded(self, name: str, value: object) -> str:
        """What was recorded of a setting: another engine's trace tells of a few."""
        is_told = self.kind is not Kind.RESIMULATED or name in self.options.settings
        return as_text(value) if is_told else NOT_TOLD

    def asked(self, words: str) -> Asked:
        """Read a line, and hold it to what the run knows; ConfigError says what is wrong."""
        found = asked(words)
        variant, options = changed(self.variant, self.options, changes_of(found))
        settled(self.scenario, variant, options)
        return found


def changes_of(asked: Asked) -> Changes:
    """What is asked for, as the engine takes it."""
    return Changes(asked.variant, asked.settings, asked.without)


def as_text(value: object) -> str:
    """A setting's value as `--set` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def choices_of(trace: Trace) -> Choices:
    """What can be asked of a trace; ConfigError says why nothing can, and what would help."""
    if trace.path is None:
        raise ConfigError("it is in no file, so no other process can run it again",
                          where=trace.name, todo="save it and open what was saved")  # fmt: skip
    if is_ours(trace):
        variant, options = options_of(trace)
        kind = Kind.EXACT if trace.manifest.clock.kind == "virtual" else Kind.REAL_CLOCK
        return Choices(kind, scenario_of(trace, SCENARIOS), variant, options)
    told: Mapping[str, str] = told_settings(trace)
    return Choices(Kind.RESIMULATED, scenario(SCENARIO), VARIANT, Options(settings=told))
