"""What `check` is told beforehand: `stepscope.toml`, or `[tool.stepscope]` in `pyproject.toml`.

    select = ["COR", "STV"]         # only these rules: codes, names, or how codes begin
    ignore = ["STV003"]             # not these
    require = ["STV001"]            # these have to be able to judge a trace, or it fails
    fail-on = "warning"             # error, warning or never
    baseline = "known.json"         # what is known; from the folder of this file on

    [rules.COR003]                  # in pyproject.toml: [tool.stepscope.rules.COR003]
    max_share = 0.2                 # `stepscope check --show-config` lists every threshold

The nearest folder counts that has either file, from the working directory upwards, as far as the
repository's root. What both say, `stepscope.toml` says last; the command line has the last word.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from stepscope.ingest.errors import ConfigError

if TYPE_CHECKING:
    from stepscope.analyzers.findings.rule import Rule

FailOn = Literal["error", "warning", "never"]
FAIL_ON: tuple[str, ...] = get_args(FailOn)
COMMAND_LINE = "command line"

# The settings, by the name that they have in a file, and their types.
_SETTINGS: dict[str, Any] = {
    "select": list[str],
    "ignore": list[str],
    "require": list[str],
    "fail-on": FailOn,
    "baseline": str,
    "rules": dict[str, dict[str, Any]],
}


@dataclass(frozen=True, slots=True)
class CheckConfig:
    """How to check; `origins` says for each setting that is not a default where it was stated.

    `thresholds` are by code of a rule; their origins are named `COR003.max_share`.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    fail_on: str = "error"
    baseline: Path | None = None
    thresholds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    def with_options(
        self,
        *,
        select: tuple[str, ...] | None = None,
        ignore: tuple[str, ...] | None = None,
        require: tuple[str, ...] | None = None,
        fail_on: str | None = None,
        baseline: Path | None = None,
    ) -> CheckConfig:
        """The same with what the command line states in place of what the files do."""
        options = {"select": select, "ignore": ignore, "require": require, "fail_on": fail_on,
                   "baseline": baseline}  # fmt: skip
        given: dict[str, Any] = {name: each for name, each in options.items() if each is not None}
        origins = {**self.origins, **dict.fromkeys(given, COMMAND_LINE)}
        return replace(self, **given, origins=origins)

    def rules(self) -> tuple[Rule, ...]:
        """The rules that are to run, with their thresholds.

        Raises ConfigError for a name that fits none, where none is left, and where one that is
        required is not among them.
        """
        from stepscope.analyzers.check import registry
        from stepscope.analyzers.check.thresholds import tune

        chosen = registry.select(self.select, self.ignore)
        if not chosen:
            raise ConfigError("no rule is selected", todo="ignore less, or select more")
        codes = {rule.code for rule in chosen}
        if absent := [code for code in self.required() if code not in codes]:
            what = f"{', '.join(absent)} cannot be required: --select or --ignore leaves it out"
            raise ConfigError(what, todo="select them too, or require less")
        return tune(chosen, self.thresholds)

    def required(self) -> tuple[str, ...]:
        """The codes of the rules that have to be able to judge; raises ConfigError."""
        from stepscope.analyzers.check import registry

        return tuple(rule.code for rule in registry.select(self.require)) if self.require else ()


def load_config(folder: Path | None = None) -> CheckConfig:
    """What the files say that hold in `folder`, by default the working directory.

    Raises ConfigError, naming the file, for what is not a setting, or not of its type.
    """
    config = CheckConfig()
    for file, stated in _nearest((folder or Path.cwd()).absolute()):
        config = _overlaid(config, stated, file)
    return config


def _nearest(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    for each in (folder, *folder.parents):
        if found := list(_stated_in(each)):
            return found
        if (each / ".git").exists():
            break
    return []


def _stated_in(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The settings of a folder's files, the ones that have the last word last."""
    pyproject, own = folder / "pyproject.toml", folder / "stepscope.toml"
    if pyproject.is_file():
        tool = _parsed(pyproject).get("tool")
        stated = tool.get("stepscope") if isinstance(tool, dict) else None
        if isinstance(stated, dict):
            yield pyproject, stated
    if own.is_file():
        yield own, _parsed(own)


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"not valid TOML: {error}", where=str(file)) from None


def _overlaid(config: CheckConfig, stated: Mapping[str, Any], file: Path) -> CheckConfig:
    values = {name: _typed(name, value, file) for name, value in stated.items()}
    thresholds = _thresholds(values.pop("rules", {}), file)
    given: dict[str, Any] = {name.replace("-", "_"): value for name, value in values.items()}
    for name in ("select", "ignore", "require"):
        if name in given:
            given[name] = tuple(given[name])
    if "baseline" in given:
        given["baseline"] = file.parent / given["baseline"]
    tuned = [f"{code}.{name}" for code, named in thresholds.items() for name in named]
    merged = {**config.thresholds}
    for code, named in thresholds.items():
        merged[code] = {**merged.get(code, {}), **named}
    origins = {**config.origins, **dict.fromkeys([*given, *tuned], file.name)}
    return replace(config, **given, thresholds=merged, origins=origins)


def _typed(name: str, value: object, file: Path) -> Any:
    if name not in _SETTINGS:
        near = get_close_matches(name, _SETTINGS, n=1)
        todo = f"did you mean {near[0]}?" if near else f"settings are {', '.join(_SETTINGS)}"
        raise ConfigError(f"there is no setting {name!r}", where=str(file), todo=todo)
    try:
        return msgspec.convert(value, _SETTINGS[name])
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name}: {error}", where=str(file)) from None


def _thresholds(stated: Mapping[str, Mapping[str, Any]], file: Path) -> dict[str, dict[str, Any]]:
    if not stated:
        return {}
    from stepscope.analyzers.check.thresholds import checked

    try:
        return checked(stated)
    except ConfigError as error:
        raise ConfigError(error.what, where=str(file), todo=error.todo) from None
