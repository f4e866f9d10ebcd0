"""KV blocks that change hands in vLLM's block pool, and what its prefix cache can find."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from types import CodeType
from typing import Any

from stepscope.ingest.attach.hooks import CALLER, Hooks
from stepscope.ingest.attach.scheduler_recording import BlockChange
from stepscope.ingest.attach.vllm.engine_config import FOLLOWED

_new = tuple.__new__
"""Makes a named tuple without the function of Python's that its class has for that."""
NOBODY = "nobody"
"""Owner of what was taken on nobody's behalf, such as by a KV connector."""
NOT_YET: Any = None
"""Owner of what was claimed in a call of `schedule()`, until the call says whose it is."""
MOST_FRAMES, ENDS = 6, ("schedule", "update_from_output")
_TELLS: dict[int, tuple[CodeType, bool | None]] = {}
"""Functions by the ids of their codes, which are kept, so that no other gets one's id: whether it
has a request among its locals, None where no caller of it need be asked. A code's hash is that of
all its names and constants, made anew each time.
"""
HASHES = "STEPSCOPE_BLOCK_HASHES"
"""Set, blocks are told with their hashes: a text for each, kept for as long as the engine runs."""


class KVBlocks:
    """Collects changes of a pool until they are told, in their order.

    Only calls that change hands are wrapped: a request that decodes makes one in as many steps as
    a block has tokens. Whose a block is stands in the caller's locals, which are a dictionary made
    anew for whoever asks; so the batch of a call of `schedule()` is asked where it can be.
    """

    def __init__(self, manager: Any, hooks: Hooks) -> None:
        self.changes: list[BlockChange] = []
        self.num_cached = 0
        self.pool = manager.block_pool
        self.num_blocks = int(self.pool.num_gpu_blocks) - 1  # the null block is nobody's
        self.count_free: Callable[[], int] = self.pool.get_num_free_blocks
        self._manager = manager
        self.has_cache = bool(getattr(self.pool, "enable_caching", False))
        self._tells_hashes = bool(os.environ.get(HASHES))
        self._let_go: dict[int, list[str]] = {}
        self.acts_for: tuple[str, int | None] | None = None
        """Whose blocks a call of the pool is about, where that is known; else frames are asked."""
        self.asks_later = False
        """Whether a claim is left NOT_YET owned, for `find_owners` to see to."""
        self.is_told = False
        """Whether a SchedulerOutput says whose the blocks are that its call claimed."""
        around, takes = hooks.around, FOLLOWED["block_pool"] | FOLLOWED["prefix_cache"]
        hooks.instead(self.pool, "get_new_blocks", takes["get_new_blocks"], self._claiming(hooks))
        for name, before, after in (
            ("touch", self._shared, None),
            ("cache_full_blocks", None, self._cached),
            ("evict_blocks", self._evicted, None),
            ("reset_prefix_cache", self._resetting, self._reset),
        ):
            if self.has_cache or name not in FOLLOWED["prefix_cache"]:
                around(self.pool, name, takes[name], before=before, after=after)
        hooks.instead(self.pool, "free_blocks", takes["free_blocks"], self._releasing(hooks))
        if hasattr(manager, "pop_blocks_for_free"):
            around(manager, "pop_blocks_for_free", ("request",), after=self._was_let_go)
        coordinator = getattr(manager, "coordinator", None)
        groups = getattr(coordinator, "single_type_managers", ())
        ids = tuple(getattr(each, "kv_cache_group_id", None) for each in groups)
        self._groups, self._managers = ids, groups
        self.only_group: tuple[int | None, ...] = ids if len(ids) == 1 else ()
        """The id of the only group; nothing where `acts_for` cannot be told."""
        self._copies = bool(getattr(coordinator, "enable_partial_hash_hits", False))
        if self._copies:
            around(manager, "take_kv_cache_block_copies", after=self._copied)
        self._before_reset: list[Any] = []

    def missing_for(self, request: Any, num_tokens: int) -> int:
        """How many blocks a running request lacks for so many tokens."""
        name = request.request_id
        managers = self._manager.coordinator.single_type_managers
        held = ((len(each.req_to_blocks.get(name, ())), each.block_size) for each in managers)
        return sum(max(-(-num_tokens // size) - count, 0) for count, size in held)

    def find_owners(self, output: Any) -> None:
        """Find whose the blocks are that were claimed in the call that gave this output.

        Whoever was preempted in it has given them back since, and another may have them now. The
        first output says whether this version tells; so far frames were asked.
        """
        if not self.is_told:
            batch = getattr(output, "scheduled_cached_reqs", None)
            self.is_told = hasattr(batch, "new_block_ids") and not self._copies
            return
        if self._claimed_in_turn(output.scheduled_cached_reqs):
            return
        owners, changes = self._going_on(output.scheduled_cached_reqs), self.changes
        place = len(changes)
        for op, ids, owner, group, _, _ in reversed(changes):
            place -= 1
            if owner is NOT_YET:
                found = owners.get(ids[0]) or self._holder(ids[0])
                changes[place] = _new(BlockChange, ("claim", ids, *found, None, None))
            elif op == "release":
                owners.update(dict.fromkeys(ids, (owner, group)))

    def _claimed_in_turn(self, batch: Any) -> bool:
        """Whether requests that go on claimed one after the other, in the order of the batch, and
        nothing else changed: their blocks have owners then. It is so in most steps.
        """
        names, new_ids, changes = batch.req_ids, batch.new_block_ids, self.changes
        got = [*compress(range(len(names)), new_ids)]
        if len(got) != len(changes) or not self.only_group:
            return False
        (group,), told = self.only_group, []
        for place, (_, ids, owner, _, _, _) in zip(got, changes, strict=True):
            if owner is not NOT_YET or (ids,) != (*new_ids[place],):
                return False
            told.append(_new(BlockChange, ("claim", ids, names[place], group, None, None)))
        changes[:] = told
        return True

    def _going_on(self, batch: Any) -> dict[int, tuple[str, int | None]]:
        """Whose the blocks are that requests of the batch before have got."""
        names, new_ids, groups, owners = batch.req_ids, batch.new_block_ids, self._groups, {}
        for place in compress(range(len(names)), new_ids):  # few: no other's name is touched
            for group, ids in zip(groups, new_ids[place], strict=True):
                for number in ids:
                    owners[number] = names[place], group
        return owners

    def _holder(self, number: int) -> tuple[str, int | None]:
        """Whose a block is by the managers' own books: of who is not one of those that go on."""
        for manager, group in zip(self._managers, self._groups, strict=True):
            for name, blocks in manager.req_to_blocks.items():
                if any(block.block_id == number for block in blocks):
                    return name, group
        return NOBODY, None

    def _releasing(self, hooks: Hooks) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """What is freed may be an iterator, which can be read once: the pool gets a list."""

        changes, has_cache = self.changes, self.has_cache

        def make(free: Callable[..., Any]) -> Callable[..., Any]:
            def hooked(ordered_blocks: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
                blocks = [*ordered_blocks]
                if not hooks.is_stopped:
                    try:
                        owner, group = self.acts_for or _owner(sys._getframe(1))
                        known = [block.block_id for block in blocks if not block.is_null]
                        if self._let_go and owner == NOBODY:
                            for number in known:
                                self._release_late(number, group)
                        elif known:
                            told = "release", known, owner, group, None, None
                            changes.append(_new(BlockChange, told))
                    except Exception as error:
                        hooks.stop(error)
                result = free(blocks, *args, **kwargs)
                if has_cache:
                    hooks.safely(self._freed, blocks)
                return result

            return hooked

        return make

    def _evicting(self, num_blocks: int, caller: Any) -> None:
        """The free blocks that are taken next lose what the cache found in them."""
        block = self.pool.free_block_queue.fake_free_list_head.next_free_block
        evicted = []
        for _ in range(num_blocks):
            if block is None or block.block_id < 0:
                break
            if block.block_hash is not None:
                evicted.append(block)
            block = block.next_free_block
        if evicted:
            self.num_cached -= len(evicted)
            self._tell("evict", evicted, _owner(caller))

    def _claiming(self, hooks: Hooks) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        changes = self.changes

        def make(claim: Callable[..., Any]) -> Callable[..., Any]:
            def hooked(num_blocks: int, *args: Any, **kwargs: Any) -> Any:
                if self.num_cached:
                    hooks.safely(self._evicting, num_blocks, sys._getframe(1))
                blocks = claim(num_blocks, *args, **kwargs)
                if not hooks.is_stopped:
                    try:
                        if num_blocks == 1:  # as of whoever decodes
                            ids = [blocks[0].block_id]
                        else:
                            ids = [block.block_id for block in blocks]
                        owner, group = self.acts_for or (
                            (NOT_YET, None) if self.asks_later else _owner(sys._getframe(1))
                        )
                        told = "claim", ids, owner, group, None, None
                        changes.append(_new(BlockChange, told))
                    except Exception as error:
                        hooks.stop(error)
                return blocks

            return hooked

        return make

    def _shared(self, blocks: Sequence[Any]) -> None:
        owner, group = _owner(sys._getframe(CALLER))
        flat = _flat(blocks)
        found = [block for block in flat if not block.is_null]
        self.num_cached -= sum(
            block.ref_cnt == 0 and block.block_hash is not None for block in found
        )
        if found:
            self._tell("share", found, (owner, group), hashed=self._tells_hashes)

    def _release_late(self, number: int, group: int | None) -> None:
        owners = self._let_go.get(number, [NOBODY])
        name = owners.pop(0)
        if not owners:
            self._let_go.pop(number, None)
        if name:
            self.changes.append(BlockChange("release", [number], name, group))

    def _freed(self, blocks: Sequence[Any]) -> None:
        self.num_cached += sum(
            block.ref_cnt == 0 and block.block_hash is not None and not block.is_null
            for block in blocks
        )

    def _was_let_go(self, blocks: Sequence[Any], request: Any) -> None:
        known = [block.block_id for block in _flat(blocks) if not block.is_null]
        for number in known:
            self._let_go.setdefault(number, []).append(request.request_id)
        if known:
            self.changes.append(BlockChange("let-go", known, request.request_id))

    def _copied(self, made: tuple[Sequence[Any], Sequence[Any]]) -> None:
        """Source and copy are both kept until the copy has been made."""
        for copy in made[0]:
            source, target = copy.src_block_id, copy.dst_block_id
            owner = next((each.owner for each in self.changes if target in each.ids), NOBODY)
            self.changes.append(BlockChange("copy", [target], owner, source=source))
            self.changes.append(BlockChange("let-go", [source], owner))
            self._let_go.setdefault(source, []).append(owner)
            self._let_go.setdefault(target, []).append("")

    def _cached(
        self, _: object, request: Any, blocks: Sequence[Any], first: int, last: int,
        group: int | None,
    ) -> None:  # fmt: skip
        found = [each for each in blocks[first:last] if each.block_hash is not None]
        if found:
            self._tell("cache", found, (request.request_id, group))

    def _evicted(self, block_ids: Iterable[int]) -> None:
        blocks = [self.pool.blocks[number] for number in block_ids]
        found = [block for block in blocks if block.block_hash is not None]
        self.num_cached -= sum(block.ref_cnt == 0 for block in found)
        if found:
            self._tell("evict", found, (NOBODY, None))

    def _resetting(self) -> None:
        self._before_reset = [each for each in self.pool.blocks if each.block_hash is not None]

    def _reset(self, is_reset: bool) -> None:
        if is_reset:
            self.num_cached = 0
            if self._before_reset:
                ids = [block.block_id for block in self._before_reset]
                self.changes.append(BlockChange("evict", ids, NOBODY))
        self._before_reset = []

    def _tell(
        self, op: str, blocks: Sequence[Any], owned: tuple[str, int | None], hashed: bool = True
    ) -> None:
        ids = [block.block_id for block in blocks]
        hashes = [_text(block.block_hash) for block in blocks] if self._tells_hashes else None
        self.changes.append(BlockChange(op, ids, *owned, hashes if hashed else None))


def _flat(blocks: Sequence[Any]) -> list[Any]:
    """Blocks of all groups: some versions give a list for each."""
    if blocks and not hasattr(blocks[0], "block_id"):
        return [block for group in blocks for block in group]
    return list(blocks)


def _text(block_hash: Any) -> str:
    return block_hash[:8].hex() if isinstance(block_hash, bytes) else str(block_hash)


def _tells(code: CodeType) -> tuple[CodeType, bool | None]:
    has_request = not {"request_id", "request"}.isdisjoint(code.co_varnames)
    told = _TELLS[id(code)] = code, None if code.co_name in ENDS else has_request
    return told


def _owner(frame: Any) -> tuple[str, int | None]:
    """On whose behalf a pool was called, and for which group: as its callers' locals say."""
    for _ in range(MOST_FRAMES):
        if frame is None:
            break
        code = frame.f_code
        _, tells = _TELLS.get(id(code)) or _tells(code)
        if tells is None:
            break
        if tells:
            told = frame.f_locals
            name = told.get("request_id") or getattr(told.get("request"), "request_id", None)
            if isinstance(name, str):
                return name, getattr(told.get("self"), "kv_cache_group_id", None)
        frame = frame.f_back
    return NOBODY, None
