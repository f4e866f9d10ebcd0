"""`stepscope rules`: what a rule's author needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from string import Template

import click

from stepscope.ingest.errors import ConfigError

RULE = Template('''"""$name: say in one line what is wrong in the trace.

## What it finds
When it fires, in the words of the tables: what is compared with what, and from where on it counts.

## Why it hurts
What it costs whom.

## Example
    the message of a real finding

## How to fix
What an engine's developer does about it.

## References
The report, pull request or paper that it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.findings.rule import each, finding

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

FIX = "say what to do about it"


@dataclass(frozen=True, slots=True)
class $title:
    """Say in one line when it fires."""

    code: ClassVar[str] = "$code"
    name: ClassVar[str] = "$name"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("steps.dur_ns",)

    min_dur_ns: int = 1_000_000_000
    limit: int = 50

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per step that lasts at least `min_dur_ns`, in order of time."""
        is_wrong = pl.col("dur_ns") >= self.min_dur_ns
        end_ns = (pl.col("ts_ns") + pl.col("dur_ns")).alias("end_ns")
        rows = trace.steps.filter(is_wrong).with_columns(end_ns).sort("ts_ns").collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = f"step {row['step']} is wrong"
        return finding(self, message, FIX, at=row, evidence={"dur_ns": row["dur_ns"]})
''')

TEST = Template('''"""$code $name."""

from __future__ import annotations

from stepscope.analyzers.rules.$family.$module import $title
from tests.traces import trace_of


def test_it_fires_on_the_smallest_trace_that_has_it() -> None:
    trace = trace_of(steps=[{"step": 1, "kind": "decode", "dur_ns": 1_000_000_000}])

    assert [found.step for found in $title().check(trace)] == [1]


def test_it_is_silent_on_the_nearest_trace_that_has_not() -> None:
    trace = trace_of(steps=[{"step": 1, "kind": "decode", "dur_ns": 999_999_999}])

    assert $title().check(trace) == []
''')
_CODE, _NAME = re.compile(r"[A-Z]{3}[0-9]{3}"), re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")


@click.group(invoke_without_command=True)
@click.pass_context
def rules(ctx: click.Context) -> None:
    """List the rules, or begin a new one."""
    if ctx.invoked_subcommand is None:
        from stepscope.analyzers.check.registry import by_family, usable_rules

        for rule in by_family(usable_rules()):
            click.echo(f"{rule.code}  {rule.severity:<8} {rule.name}")


@rules.command()
@click.argument("code")
@click.argument("name")
@click.option("--checkout", type=click.Path(path_type=Path),
              help="The checkout to write to  [default: the one of this command]")  # fmt: skip
def new(code: str, name: str, checkout: Path | None) -> None:
    """Write rule CODE called NAME, its test, and its lines in the registry.

    The new rule works, and reports steps of a second or more. Replace that by your own condition.

    \b
      stepscope rules new BAT014 draft-never-accepted
    """
    begun = NewRule.named(code, name, checkout or Path(__file__).resolve().parents[3])
    for path in begun.write():
        click.echo(f"wrote {path.relative_to(begun.checkout)}")
    click.echo(
        f"next: write your condition into {begun.module}.py, run its test, and run make docs"
    )


@dataclass(frozen=True, slots=True)
class NewRule:
    """A rule that is to be written into a checkout."""

    code: str
    name: str
    checkout: Path

    @classmethod
    def named(cls, code: str, name: str, checkout: Path) -> NewRule:
        """Raise ConfigError unless the code and name are free and the checkout is one."""
        if not _CODE.fullmatch(code):
            raise ConfigError(
                f"{code!r} is not the code of a rule",
                todo="use three letters and three digits, such as BAT014",
            )
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} is not the name of a rule",
                todo="join words that say what is wrong by hyphens: draft-never-accepted",
            )
        rule = cls(code, name, checkout)
        if not rule.registry.is_file():
            raise ConfigError("is not a checkout of stepscope", where=str(checkout),
                              todo="run it in one, or name one with --checkout")  # fmt: skip
        taken = [path.stem for path in (checkout / "analyzers" / "rules").glob("*/*.py")]
        words = name.replace("-", "_")
        if there := [each for each in taken if each.startswith(code.lower()) or each[7:] == words]:
            raise ConfigError(
                f"there is {there[0]} already", todo="the code of a rule is never reused"
            )
        return rule

    @property
    def module(self) -> str:
        """Name of its module: `bat014_draft_never_accepted`."""
        return f"{self.code.lower()}_{self.name.replace('-', '_')}"

    @property
    def family(self) -> str:
        """Name of the folder of its family: `bat`."""
        return self.code[:3].lower()

    @property
    def title(self) -> str:
        """Name of its class: `DraftNeverAccepted`."""
        return "".join(word.capitalize() for word in self.name.split("-"))

    @property
    def registry(self) -> Path:
        """The file that lists all rules."""
        return self.checkout / "analyzers" / "check" / "registry.py"

    def write(self) -> list[Path]:
        """Write its files, those of a new family among them, and return all."""
        words = {"code": self.code, "name": self.name, "title": self.title, "module": self.module,
                 "family": self.family}  # fmt: skip
        folder = self.checkout / "analyzers" / "rules" / self.family
        tests = self.checkout / "tests" / "analyzers" / "rules" / self.family
        begun = [] if folder.is_dir() else self._begin_family(folder, tests)
        rule, test = folder / f"{self.module}.py", tests / f"test_{self.module}.py"
        rule.write_text(RULE.substitute(words), encoding="utf-8")
        test.write_text(TEST.substitute(words), encoding="utf-8")
        self._register()
        return [*begun, rule, test, self.registry]

    def _begin_family(self, *folders: Path) -> list[Path]:
        """Make the folders of a family that has no rule yet."""
        about = f'"""{self.code[:3]}: say in one line what the rules of this family look at."""\n'
        for folder in folders:
            folder.mkdir(exist_ok=True)
            (folder / "__init__.py").write_text(about, encoding="utf-8")
        return [folder / "__init__.py" for folder in folders]

    def _register(self) -> None:
        """Add the import and the instance, each where its code belongs."""
        text = self.registry.read_text(encoding="utf-8")
        place = f"{self.family}.{self.module}"
        line = f"from stepscope.analyzers.rules.{place} import {self.title}\n"
        pattern = r"from stepscope\.analyzers\.rules\.([\w.]+) import \w+\n"
        text = _inserted(text, pattern, line, place)
        order = re.findall(r"from stepscope\.analyzers\.rules\.[\w.]+ import (\w+)\n", text)
        before = order[order.index(self.title) - 1]
        text = text.replace(f"    {before}(),\n", f"    {before}(),\n    {self.title}(),\n")
        self.registry.write_text(text, encoding="utf-8")


def _inserted(text: str, pattern: str, line: str, key: str) -> str:
    """Put `line` before the first match whose group 1 is behind `key`, or behind the last one."""
    found = list(re.finditer(pattern, text))
    place = next((each.start() for each in found if each[1] > key), found[-1].end())
    return text[:place] + line + text[place:]
