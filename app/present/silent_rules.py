"""Rules that found nothing, and rules that could not judge: counts by family, and their codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stepscope.analyzers.check.run import CheckResult
from stepscope.app.palette import NOT_APPLICABLE


@dataclass(frozen=True, slots=True)
class SilentRules:
    """Rules about which nothing else is said: what they have in common, and their codes."""

    label: str
    codes: tuple[str, ...]

    @property
    def by_family(self) -> str:
        """How many there are of each family: `STV 12 · BAT 6`."""
        numbers = Counter(code.rstrip("0123456789") for code in self.codes)
        return " · ".join(f"{family} {number}" for family, number in numbers.items())

    def text(self, *, with_codes: bool) -> str:
        """The codes, or how many there are of each family."""
        return " ".join(self.codes) if with_codes else self.by_family


def silent_rules(result: CheckResult) -> tuple[SilentRules, ...]:
    """Those that judged and found nothing, and those that could not judge, where there are any."""
    clean = (code for code, number in result.counts.items() if not number)
    return tuple(
        _known(("✔ clean", clean), (f"{NOT_APPLICABLE} not applicable", result.not_applicable))
    )


def _known(*groups: tuple[str, Iterable[str]]) -> Iterator[SilentRules]:
    for label, codes in groups:
        if known := tuple(codes):
            yield SilentRules(label, known)
