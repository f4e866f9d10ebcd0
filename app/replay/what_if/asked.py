"""The words in which a change is asked for: those of `stepscope replay`, or short for them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.app.replay.fidelity import Kind
from stepscope.ingest.errors import ConfigError

LONGEST = 2_000
"""Characters of a line; a longer one is none that a person typed."""
FORMS = (
    ("--variant NAME", "another variant of the scenario; NAME alone says the same"),
    ("--no-fault NAME", "without a fault that was recorded; may be repeated"),
    ("--set K=V", "a setting otherwise; K=V alone says the same; may be repeated"),
)
"""What a line may hold, and what each means."""
OPTIONS = ("--variant", "--no-fault", "--set")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be different, as far as a person can type it."""

    variant: str | None = None
    without: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> list[str]:
        """The options of `stepscope replay` that say so, in one order."""
        of_variant = ["--variant", self.variant] if self.variant else []
        of_faults = [each for name in self.without for each in ("--no-fault", name)]
        of_settings = [
            each for key, text in self.settings.items() for each in ("--set", f"{key}={text}")
        ]
        return [*of_variant, *of_faults, *of_settings]

    @property
    def words(self) -> str:
        """These options as one types them."""
        return shlex.join(self.options)

    def command(self, trace: Path, out: str, kind: Kind) -> str:
        """The command line that does the same, and records to `out`."""
        engine = ["--engine", "stepscope"] if kind is Kind.RESIMULATED else []
        given = ["stepscope", "replay", str(trace), *engine, *self.options, "-o", out]
        return shlex.join(given)


def asked(words: str) -> Asked:
    """Read a line; ConfigError is a line of what is wrong with it."""
    if len(words) > LONGEST:
        raise ConfigError(f"a line of {len(words):,} characters is not read",
                          todo=f"write one of {LONGEST:,} at most")  # fmt: skip
    told = list(_pairs(words))
    if not told:
        raise ConfigError("nothing is to be different", todo=f"give {_forms()}")
    variants = [text for option, text in told if option == "--variant"]
    if len(variants) > 1:
        raise ConfigError(f"two variants are given, {variants[0]} and {variants[1]}",
                          todo="a run has one")  # fmt: skip
    return Asked(
        variants[0] if variants else None,
        tuple(dict.fromkeys(text for option, text in told if option == "--no-fault")),
        _settings([text for option, text in told if option == "--set"]),
    )


def _pairs(words: str) -> Iterator[tuple[str, str]]:
    """Each option and what is given to it; a word alone is a setting or a variant."""
    try:
        rest = shlex.split(words)
    except ValueError as error:
        raise ConfigError(f"the line cannot be read: {str(error).lower()}") from None
    while rest:
        word = rest.pop(0)
        option, has_value, text = word.partition("=")
        if option in OPTIONS and has_value:
            yield option, text
        elif word in OPTIONS:
            if not rest:
                raise ConfigError(f"{word} says nothing", todo=f"give {_forms()}")
            yield word, rest.pop(0)
        elif word.startswith("-"):
            raise ConfigError(f"{word} cannot be asked for here", todo=f"give {_forms()}")
        else:
            yield ("--set" if has_value else "--variant"), word


def _settings(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        key, is_given, text = pair.partition("=")
        if not is_given or not key:
            raise ConfigError(f"--set {pair}: not of the form K=V")
        if key in found:
            raise ConfigError(f"--set {key}=... is given more than once")
        found[key] = text
    return found


def _forms() -> str:
    return ", ".join(form for form, _ in FORMS)


def taken(line: str, words: str) -> str:
    """A line with a choice put into it: instead of another variant or value of that, else after."""
    try:
        told = shlex.split(line)
    except ValueError:
        told = []
    option, value = words.split(" ", 1)
    key = value.partition("=")[0]
    kept: list[str] = []
    pairs = iter(told)
    for word in pairs:
        given = next(pairs, "") if word in OPTIONS else None
        is_same = given is not None and given.partition("=")[0] == key
        if word == option and (is_same or option == "--variant"):
            continue
        kept += [word] if given is None else [word, given]
    return shlex.join([*kept, option, value])
