"""How SGLang's scheduler is started, who comes when, and what comes of it; imports nothing of ours.

Each request comes before the step that `at` names, which counts calls that form a batch.
"""

from __future__ import annotations

import random
from typing import Any

Row = dict[str, Any]
SHARED = [5 + at for at in range(24)]


def _burst(seed: int, number: int, at: int, **more: Any) -> list[Row]:
    """Requests that share parts of a prefix; `ignore_eos` keeps them from ending early."""
    draw = random.Random(seed)
    rows = []
    for each in range(number):
        length = draw.randrange(6, 40)
        own = [3 + (11 * each + 7 * seed + place) % 240 for place in range(length - length // 2)]
        prompt = SHARED[: length // 2] + own
        rows.append({"id": f"{at}-{each:02}", "at": at, "prompt": prompt,
                     "max_tokens": draw.randrange(10, 60), **more})  # fmt: skip
    return rows


def _situation(
    name: str,
    settings: Row,
    requests: list[Row],
    aborts: list[Row] | None = None,
    pauses: list[Row] | None = None,
    sessions: list[Row] | None = None,
) -> Row:
    """`aborts` name whom, or nobody for all; `pauses` last for so many rounds of the loop."""
    return {"name": name, "settings": settings, "requests": requests, "aborts": aborts or [],
            "pauses": pauses or [], "sessions": sessions or []}  # fmt: skip


def _priorities(rows: list[Row]) -> list[Row]:
    return [{**row, "priority": number % 4} for number, row in enumerate(rows)]


def _guided(rows: list[Row], each: int, late: int) -> list[Row]:
    """Every so many are to be letters alone, by a grammar that is compiled so much later."""
    guided = [number % each == 0 for number in range(len(rows))]
    return [
        {**row, "regex": f"[a-p]{{2,{9 + number}}}", "compiled_at": row["at"] + late + number}
        if is_guided
        else row
        for number, (row, is_guided) in enumerate(zip(rows, guided, strict=True))
    ]


def _adapted(rows: list[Row], number: int) -> list[Row]:
    """Every fourth asks for no adapter, the others for one after the other."""
    return [
        {**row, "lora": None if each % 4 == 3 else f"adapter-{each % number}"}
        for each, row in enumerate(rows)
    ]


def _turns(session: str, at: int, number: int, *, streaming: bool) -> list[Row]:
    """Turns of one session, each of which goes on from the one before."""
    rows = _burst(at + number, number, at)
    names = [f"{session}-{each}" for each in range(number)]
    return [
        {**row, "id": name, "after": before,
         "session": {"id": session, "rid": None if streaming else before}}
        for row, name, before in zip(rows, names, [None, *names], strict=False)
    ]  # fmt: skip


SITUATIONS: tuple[Row, ...] = (
    _situation(
        "a small pool",
        {"max_total_tokens": 128},
        [*_burst(1, 8, 0, ignore_eos=True), *_burst(2, 6, 12)],
        [{"id": "12-05", "at": 13}, {"id": "0-00", "at": 5}],
    ),
    _situation(
        "pages of a shared prefix",
        {"max_total_tokens": 512, "page_size": 8, "schedule_policy": "lpm"},
        [*_burst(3, 10, 0), *_burst(4, 10, 30)],
    ),
    _situation(
        "chunks in mixed batches",
        {"max_total_tokens": 320, "chunked_prefill_size": 16, "enable_mixed_chunk": True,
         "schedule_policy": "lpm", "page_size": 4},
        [*_burst(5, 8, 0), *_burst(6, 8, 20)],
    ),
    _situation(
        "retractions",
        {"max_total_tokens": 240, "schedule_conservativeness": 0.01},
        [{**row, "max_tokens": 90} for row in (*_burst(7, 8, 0), *_burst(8, 6, 25))],
    ),
    _situation(
        "overlap",
        {"max_total_tokens": 240, "disable_overlap_schedule": False, "page_size": 4,
         "schedule_conservativeness": 0.01, "schedule_policy": "lpm"},
        [{**row, "max_tokens": 60} for row in (*_burst(9, 8, 0), *_burst(10, 8, 25))],
        [{"id": "25-07", "at": 26}, {"id": "0-00", "at": 9}],
    ),
    _situation(
        "priorities",
        {"max_total_tokens": 200, "enable_priority_scheduling": True,
         "priority_scheduling_preemption_threshold": 0, "max_running_requests": 4},
        _priorities([*_burst(11, 8, 0), *_burst(12, 8, 10)]),
    ),
    _situation(
        "few running slots, and a queue that takes no more",
        {"max_total_tokens": 2000, "max_running_requests": 3, "max_queued_requests": 5,
         "schedule_policy": "lof"},
        [*_burst(13, 7, 0), *_burst(14, 7, 15)],
    ),
    _situation(
        "prefills held back between decodes",
        {"max_total_tokens": 400, "prefill_decode_interval": 4, "prefill_max_requests": 2},
        [*_burst(15, 8, 0), *_burst(16, 8, 9)],
    ),
    _situation(
        "no cache, and a budget of prefill",
        {"max_total_tokens": 400, "disable_radix_cache": True, "max_prefill_tokens": 48,
         "chunked_prefill_size": -1},
        [*_burst(17, 8, 0, ignore_eos=True), *_burst(18, 8, 9)],
    ),
    _situation(
        "aborts of who is in a chunk, who runs and who waits, then of all",
        {"max_total_tokens": 320, "chunked_prefill_size": 8, "enable_mixed_chunk": True,
         "max_running_requests": 5},
        [*_burst(19, 10, 0), *_burst(20, 8, 40), *_burst(21, 4, 70)],
        [{"id": "0-02", "at": 3}, {"id": "0-00", "at": 9}, {"id": "0-09", "at": 9},
         {"id": "40-01", "at": 42}, {"id": "", "at": 60}],
    ),
    _situation(
        "a queue that puts out who asks for less, and requests without a priority",
        {"max_total_tokens": 240, "enable_priority_scheduling": True, "max_queued_requests": 4,
         "schedule_low_priority_values_first": True, "max_running_requests": 3},
        [{**row, "priority": None} if number % 3 == 0 else row
         for number, row in enumerate(_priorities([*_burst(22, 9, 0), *_burst(23, 9, 12)]))],
    ),
    _situation(
        "pauses in place and with everybody put back",
        {"max_total_tokens": 240, "page_size": 4},
        [*_burst(24, 8, 0), *_burst(25, 6, 20)],
        pauses=[{"at": 6, "mode": "in_place", "rounds": 5}, {"at": 25, "mode": "retract",
                "rounds": 4}],
    ),
    _situation(
        "log probabilities beside mixed batches",
        {"max_total_tokens": 320, "chunked_prefill_size": 16, "enable_mixed_chunk": True},
        [{**row, "return_logprob": number % 3 == 0}
         for number, row in enumerate([*_burst(26, 8, 0), *_burst(27, 8, 15)])],
    ),
    _situation(
        "prompts alike that come at once, and prompts that are too long",
        {"max_total_tokens": 400, "schedule_policy": "lpm", "context_length": 64},
        [*({**row, "prompt": [9] * 40} for row in _burst(28, 6, 0)),
         *({**row, "prompt": [7] * 90} for row in _burst(29, 2, 5)), *_burst(30, 6, 8)],
    ),
    _situation(
        "grammars that are compiled late, and one that is given up meanwhile",
        {"max_total_tokens": 320},
        [*_burst(31, 6, 0, ignore_eos=True), *_guided(_burst(32, 8, 4), 2, 6),
         *_guided(_burst(33, 6, 14), 3, 9)],
        [{"id": "14-03", "at": 16}],
    ),
    _situation(
        "more adapters than fit into a batch",
        {"max_total_tokens": 400, "adapters": 4, "max_loras_per_batch": 2},
        _adapted([*_burst(34, 9, 0), *_burst(35, 9, 12)], 4),
        [{"id": "12-06", "at": 14}],
    ),
    _situation(
        "adapters that are drained for those who wait too long",
        {"max_total_tokens": 320, "adapters": 4, "max_loras_per_batch": 2,
         "lora_drain_wait_threshold": 1e-6},
        _adapted([*_burst(36, 12, 0), *_burst(37, 8, 8)], 4),
    ),
    _situation(
        "sessions whose turns go on from the one before, and others beside them",
        {"max_total_tokens": 260, "page_size": 4},
        [*_turns("talk", 0, 4, streaming=False), *_turns("chat", 2, 3, streaming=False),
         *_burst(38, 6, 3)],
        sessions=[{"id": each, "at": 0, "closed_at": 1 << 50, "streaming": False}
                  for each in ("talk", "chat")],
    ),
    _situation(
        "sessions that keep their pages between turns",
        {"max_total_tokens": 440, "page_size": 4, "enable_streaming_session": True},
        [*_turns("talk", 0, 4, streaming=True), *_turns("chat", 2, 3, streaming=True),
         *_turns("gone", 4, 2, streaming=True), *_burst(39, 8, 3), *_burst(40, 5, 60)],
        [{"id": "gone-1", "at": 40}],
        sessions=[{"id": each, "at": 0, "closed_at": closed_at, "streaming": True}
                  for each, closed_at in (("talk", 1 << 50), ("chat", 120), ("gone", 90))],
    ),
    _situation(
        "drafts, some of which are right",
        {"max_total_tokens": 400, "speculative_algorithm": "NGRAM",
         "speculative_num_draft_tokens": 4, "page_size": 1},
        [*_burst(41, 9, 0, ignore_eos=True), *_burst(42, 8, 8)],
        [{"id": "8-07", "at": 9}, {"id": "0-00", "at": 6}],
    ),
    _situation(
        "drafts in a pool that is too small for them",
        {"max_total_tokens": 320, "speculative_algorithm": "NGRAM",
         "speculative_num_draft_tokens": 3, "page_size": 4, "schedule_conservativeness": 0.01,
         "speculative_ngram_min_bfs_breadth": 1, "speculative_ngram_max_bfs_breadth": 1},
        [{**row, "max_tokens": 70} for row in (*_burst(43, 8, 0), *_burst(44, 6, 12))],
    ),
)  # fmt: skip
