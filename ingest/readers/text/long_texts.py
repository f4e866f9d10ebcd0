"""Texts of records that are longer than the limit: names are cut short, arguments left out."""

from __future__ import annotations

from collections import Counter

from stepscope.ingest.limits import Limits, raised_by


class LongTexts:
    """Holds texts to `Limits.text`; `repaired` says how many of them were longer."""

    def __init__(self, limits: Limits) -> None:
        self.repaired: Counter[str] = Counter()
        self._most = limits.text
        more = f"of more than {limits.text:,} bytes"
        self._cut = f"a name {more} cut ({raised_by('text')})"
        self._left_out = f"args {more} left out ({raised_by('text')})"

    def name(self, text: str) -> str:
        """The name; its beginning where it is too long."""
        if not self._is_long(text):
            return text
        self.repaired[self._cut] += 1
        return text[: self._most // 4]

    def args(self, text: str | None) -> str | None:
        """The arguments, which are JSON; None where they are too long."""
        if text is None or not self._is_long(text):
            return text
        self.repaired[self._left_out] += 1
        return None

    def _is_long(self, text: str) -> bool:
        return 4 * len(text) > self._most and len(text.encode(errors="replace")) > self._most
