"""What changed from one state to another, in a few words each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stepscope.app.debug.engine_state import CoreSlots, State
from stepscope.app.debug.names import Names

MAX_NAMED = 6


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is not as it was."""

    what: str
    before: str
    after: str


def changes_between(before: State, after: State, names: Names | None = None) -> list[Change]:
    """Queues by who came and went, pools by how much is held, cores slot by slot.

    Cores and blocks are called as `names` has them, by their numbers without it.
    """
    return [
        *_queue("waiting", before.waiting, after.waiting),
        *_queue("running", before.running, after.running),
        *_pool("KV blocks held", before.kv_blocks, after.kv_blocks),
        *_pool("slots held", before.slots, after.slots),
        *_slot_tokens(before.slot_tokens or {}, after.slot_tokens or {}),
        *_cores(before.cores or {}, after.cores or {}, names or Names()),
    ]


def _queue(
    what: str, before: tuple[str, ...] | None, after: tuple[str, ...] | None
) -> Iterable[Change]:
    if before == after:
        return
    was, now = before or (), after or ()
    came = [name for name in now if name not in set(was)]
    went = [name for name in was if name not in set(now)]
    signed = [f"+{name}" for name in came] + [f"-{name}" for name in went]
    moved = " ".join(signed[:MAX_NAMED]) + (" …" if len(signed) > MAX_NAMED else "")
    yield Change(what, str(len(was)), f"{len(now)}  {moved or 'reordered'}")


def _pool(
    what: str, before: Mapping[int, str] | None, after: Mapping[int, str] | None
) -> Iterable[Change]:
    was, now = before or {}, after or {}
    if was == now:
        return
    num_changed = len(dict(was.items() ^ now.items()))
    yield Change(what, str(len(was)), f"{len(now)}  ({num_changed} changed hands)")


def _slot_tokens(before: Mapping[int, int], after: Mapping[int, int]) -> Iterable[Change]:
    for slot, now in after.items():
        was = before.get(slot, 0)
        if was != now:
            yield Change(f"tokens in slot {slot}", str(was), str(now))


def _cores(
    before: Mapping[int, CoreSlots], after: Mapping[int, CoreSlots], names: Names
) -> Iterable[Change]:
    for core, now in after.items():
        was = before.get(core, CoreSlots())
        if was != now:
            yield Change(names.core(core), _slots(was, names), _slots(now, names))


def _slots(slots: CoreSlots, names: Names) -> str:
    then = "" if slots.pending is None else f", then {names.block(slots.pending)}"
    if slots.running is None:
        return f"idle{then}"
    return f"{'held for ' if slots.state == 'held' else ''}{names.block(slots.running)}{then}"
