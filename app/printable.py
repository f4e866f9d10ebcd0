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


def markdown_literal(text: str, most: int = 1_000) -> str:
    """Return `text` so that neither Markdown nor HTML means anything in it, at most so long.

    What could mean something is written as a number.
    """
    shown = plain(text)
    shown = shown if len(shown) <= most else shown[: most - 1] + "…"
    return "".join(
        f"&#{ord(char)};" if char.isascii() and not (char.isalnum() or char == " ") else char
        for char in shown
    )
