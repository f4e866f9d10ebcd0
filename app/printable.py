"""Text from a trace made safe to print: a name is never terminal control."""

from __future__ import annotations

import unicodedata

# Cc: control; Cf: bidirectional overrides and invisible joiners; Cs: lone surrogates, which no
# terminal or file can encode; Zl and Zp: line and paragraph separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def plain(text: str) -> str:
    """Return `text` on one line, with everything that could steer a terminal shown as `·`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join("·" if unicodedata.category(char) in _UNSAFE else char for char in text)
