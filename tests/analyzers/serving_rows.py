"""Rows of steps, batches, tokens and blocks, from which tests of rules build their small traces."""

from __future__ import annotations

from typing import Any

from tests.analyzers.rows import Row


def step(number: int, kind: str = "decode", **more: Any) -> Row:
    """A step of ten nanoseconds, the first of which begins at 10."""
    return {"step": number, "ts_ns": 10 * number, "dur_ns": 10, "kind": kind} | more


def prefill(number: int, num_tokens: int, num_running: int, **more: Any) -> Row:
    """A step with one prompt, or a chunk of one, of `num_tokens`, of a budget of 100."""
    return step(number, "prefill", **prompts(num_tokens, num_running)) | more


def prompts(num_tokens: int, num_running: int) -> dict[str, Any]:
    """Counts of a step with one prompt."""
    return {
        "num_prefill_reqs": 1, "num_decode_reqs": 0, "num_prefill_tokens": num_tokens,
        "num_decode_tokens": 0, "token_budget": 100, "num_running": num_running,
    }  # fmt: skip


def decode(number: int, num_reqs: int, **more: Any) -> Row:
    """A step in which `num_reqs` requests decode and nobody else runs."""
    counts: dict[str, Any] = {
        "num_prefill_reqs": 0, "num_decode_reqs": num_reqs, "num_prefill_tokens": 0,
        "num_decode_tokens": num_reqs, "token_budget": 100, "num_running": num_reqs,
    }  # fmt: skip
    return step(number, **counts) | more


def row(number: int, request: str, num_tokens: int = 1, **more: Any) -> Row:
    """A request in the batch of a step; by default it decodes."""
    return {
        "step": number, "ts_ns": 10 * number, "request": request, "phase": "decode",
        "num_tokens": num_tokens,
    } | more  # fmt: skip


def chunk(number: int, request: str, num_tokens: int, *, final: bool = True, **more: Any) -> Row:
    """A prompt, or a part of one, in the batch of a step."""
    return row(number, request, num_tokens, phase="prefill", is_final_chunk=final) | more


def token(number: int, request: str, position: int, **more: Any) -> Row:
    """A token that was sampled at the end of a step."""
    return {
        "step": number, "ts_ns": 10 * number + 10, "request": request, "position": position,
        "source_step": number,
    } | more  # fmt: skip


def owned(op: str, number: int, owner: str, ts_ns: int, **more: Any) -> Row:
    """A KV block that changes hands."""
    return {
        "op": op, "id": number, "owner": owner, "ts_ns": ts_ns, "step": ts_ns,
        "resource": "kv-block",
    } | more  # fmt: skip


def segment(number: int, place: int, num_tokens: int, **more: Any) -> Row:
    """A segment of a step's batch, sound; the first is of prompts, the second of decodes."""
    phase = ("prefill", "decode")[place]
    return {
        "step": number, "ts_ns": 10 * number, "segment": place, "phase": phase, "num_rows": 1,
        "num_tokens": num_tokens, "first_cu_len": 0, "last_cu_len": num_tokens,
        "executed_path": phase, "input_ids_len": num_tokens, "positions_len": num_tokens,
        "slot_mapping_len": num_tokens,
    } | more  # fmt: skip
