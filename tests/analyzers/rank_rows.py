"""Rows of ranks, collectives and shared buffers, from which tests of rules build small traces."""

from __future__ import annotations

from typing import Any

from tests.analyzers.rows import Row


def collective(rank: int, ordinal: int, op: str = "all-reduce", **more: Any) -> Row:
    """An operation of a rank of group `ep` of two, entered at ten times its number."""
    return {
        "rank": rank, "step": 1, "ts_ns": 10 * ordinal, "dur_ns": 5, "ordinal": ordinal, "op": op,
        "dtype": "float32", "num_elements": 64, "group": "ep", "expected_ranks": "0,1",
    } | more  # fmt: skip


def word(rank: int, ordinal: int, command: str, slot: int | None = None, **more: Any) -> Row:
    """A word of the protocol, broadcast by the head."""
    says = {"dtype": "uint32", "num_elements": 1, "command": command, "slot": slot}
    return collective(rank, ordinal, "broadcast", **says) | more


def access(stream: str, op: str, ts_ns: int, buffer: str = "b", **more: Any) -> Row:
    """A read, write or copy of the first eight bytes of a buffer."""
    return {
        "step": 1, "ts_ns": ts_ns, "stream": stream, "op": op, "buffer": buffer, "first": 0,
        "last": 8,
    } | more  # fmt: skip


def sync(stream: str, op: str, ts_ns: int, event: str | None = None) -> Row:
    """An event that a stream records or waits for."""
    return {"step": 1, "ts_ns": ts_ns, "stream": stream, "op": op, "event": event}


def ordered(earlier: str, later: str, ts_ns: int, event: str = "e") -> list[Row]:
    """Let `later` wait for what `earlier` has been given."""
    return [sync(earlier, "record", ts_ns, event), sync(later, "wait", ts_ns + 1, event)]


def slot(rank: int, number: int, owner: str, op: str = "claim", **more: Any) -> Row:
    """A slot that changes hands."""
    return {
        "rank": rank, "step": 0, "ts_ns": number, "resource": "slot", "id": number, "op": op,
        "owner": owner,
    } | more  # fmt: skip


def said(request: str, position: int, digest: str | None, solo: str | None, **more: Any) -> Row:
    """A token with the digest of its logits beside that of its solo run."""
    at = 10 * position + 10
    return {
        "step": position + 1, "ts_ns": at, "request": request, "position": position,
        "source_step": position + 1, "digest": digest, "solo_digest": solo,
    } | more  # fmt: skip
