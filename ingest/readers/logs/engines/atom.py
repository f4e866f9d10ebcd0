"""Lines of ATOM's scheduler, one for each batch with a prefill in it.

[atom 15:31:09] Scheduled prefill batch: 19 reqs, 9573 tokens, req_ids: (1, 2, 3)
... Scheduled prefill batch: 2 reqs, 30 new tokens (cached: [0, 16], new: [10, 20]), req_ids: (1, 2)
... Scheduled mixed batch: 2 prefill + 30 decode, 1024+30 tokens

Newer versions say `done`, the tokens computed before, in the place of `cached`. The format: ATOM,
`atom/model_engine/scheduler.py`.
"""

from __future__ import annotations

import re

from stepscope.ingest.readers.text.collect import Line, LogRows, Source

PREFILL, MIXED, DECODE = (
    "ATOM prefill batch lines", "ATOM mixed batch lines", "ATOM decode batch lines",
)  # fmt: skip
NO_TOKENS = "ATOM lists of requests without the tokens of each"
ABBREVIATED = "ATOM lists of requests that are abbreviated"
_ALONE = re.compile(
    r"Scheduled (prefill|decode) batch: (\d{1,9}) reqs, (\d{1,15})(?: new)? tokens\b"
)
_MIXED = re.compile(
    r"Scheduled mixed batch: (\d{1,9}) prefill \+ (\d{1,9}) decode, "
    r"(\d{1,15})\+(\d{1,15}) tokens\b"
)
_LIST = re.compile(r"\b(cached|done|new): \[([0-9, ]*)\]")
_IDS = re.compile(r"\breq_ids: [(\[]([^()\[\]]*)[)\]]")
_RANK = re.compile(r"\b(?:DP|dp_rank|rank)[ =:]?(\d{1,6})\b")


class AtomLines:
    """Reads batches as steps, with their requests where each one's tokens are told."""

    name = "ATOM"
    markers = ("Scheduled prefill batch: ", "Scheduled mixed batch: ", "Scheduled decode batch: ")

    def take(self, line: Line, rows: LogRows) -> str | None:
        """Read a batch."""
        if match := _MIXED.search(line.text):
            kind, counts = MIXED, [int(text) for text in match.groups()]
        elif match := _ALONE.search(line.text):
            reqs, tokens = int(match[2]), int(match[3])
            is_prefill = match[1] == "prefill"
            kind = PREFILL if is_prefill else DECODE
            counts = [reqs, 0, tokens, 0] if is_prefill else [0, reqs, 0, tokens]
        else:
            return None
        rank = _RANK.search(line.text[: match.start()])
        source = rows.source(self.name, line, rank[0] if rank else "", int(rank[1]) if rank else 0)
        step = rows.step(
            source,
            line,
            inferred=kind,
            kind=kind.split()[1],
            num_prefill_reqs=counts[0],
            num_decode_reqs=counts[1],
            num_prefill_tokens=counts[2],
            num_decode_tokens=counts[3],
        )
        _requests(kind, counts, step, source, line.text[match.end() :], rows)
        return kind

    def end(self, rows: LogRows) -> None:
        """Nothing stays open."""


def _requests(
    kind: str, counts: list[int], step: tuple[int, int], source: Source, said: str, rows: LogRows
) -> None:
    """Add a row for each request, where the line names them and says what each one brought."""
    listed = _IDS.search(said)
    if not listed:
        return
    ids = [name.strip() for name in listed[1].split(",") if name.strip()]
    num_reqs, num_tokens = counts[0] + counts[1], counts[2] + counts[3]
    if len(ids) != num_reqs or "..." in ids:
        rows.skipped[ABBREVIATED] += 1
        return
    lists = {name: _numbers(text) for name, text in _LIST.findall(said)}
    new = lists.get("new") or ([num_tokens // num_reqs] * num_reqs if _is_even(counts) else [])
    if kind == MIXED or len(new) != num_reqs:
        rows.skipped[NO_TOKENS] += 1
        return
    before = lists.get("done") or lists.get("cached") or []
    cached = lists.get("cached") or []
    for row, request in enumerate(ids):
        rows.add(
            "batch_rows",
            source,
            step[1],
            step=step[0],
            row=row,
            request=request.strip("'\""),
            phase=kind.split()[1],
            num_tokens=new[row],
            num_computed=before[row] if row < len(before) else None,
            num_cached=cached[row] if row < len(cached) else None,
        )


def _is_even(counts: list[int]) -> bool:
    """Whether what each request brought follows from the sum: one of them, or a token each."""
    num_reqs, num_tokens = counts[0] + counts[1], counts[2] + counts[3]
    return num_reqs == 1 or num_reqs == num_tokens > 0


def _numbers(text: str) -> list[int]:
    """The numbers of a list; none of them if one is absurd or no number."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    are_numbers = all(part.isdecimal() and len(part) <= 15 for part in parts)
    return [int(part) for part in parts] if are_numbers else []
