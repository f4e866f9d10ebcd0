"""Findings for people, in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.app.formats import Asked, Checked, Rendered, left_out
from stepscope.app.present.report_text import format_result, format_summary


def render(checked: Sequence[Checked], asked: Asked) -> Rendered:
    """A block for each trace, and a line for all of them."""
    blocks = [_block(each, show_all=asked.show_all) for each in checked]
    if len(checked) > 1:
        blocks.append(format_summary([each.result for each in checked]))
    return Rendered("\n\n".join(blocks))


def _block(checked: Checked, *, show_all: bool) -> str:
    text = format_result(checked.result, checked.start_ns, show_all=show_all, unmet=checked.unmet)
    return "\n\n".join([text, *left_out(checked)])
