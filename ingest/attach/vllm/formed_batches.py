"""What vLLM's SchedulerOutput says of a batch: its rows, or what changed since the last one; and
what came of it: which of its rows gave outputs, and how many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import Any, NamedTuple

from stepscope.ingest.attach.scheduler_recording import Counts, Gave, SchedulerRecording, Step
from stepscope.ingest.attach.vllm.model_runs import Ran
from stepscope.ingest.recording.lasting import BatchRow

_new = tuple.__new__
"""Makes a named tuple without the function of Python's that its class has for that."""


class Formed(NamedTuple):
    """A batch that runs: what is expected of it when its outputs come."""

    output: Any
    step: Any
    rows: Sequence[BatchRow]
    """The rows that were told whole."""
    num_outputs: int
    num_disturbed: int
    has_drafts: bool


NOT_TOLD = Formed(None, None, (), 0, 0, has_drafts=False)
"""Stands for a batch where none runs."""


@dataclass(slots=True)
class Batches:
    """Tells batches, most of them as "that of the step before, one token on"."""

    scheduler: Any
    recording: SchedulerRecording
    prefilling: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """Requests that run and whose prefill has not ended: how many tokens of it had been computed
    when it was preempted, and whether no chunk of it has run.
    """
    names: list[str] | None = None
    """Of the batch before; None where it is not one to go on from."""
    _has_drafts: bool = field(init=False)
    _has_cache: bool = field(init=False)

    def __post_init__(self) -> None:
        """Drafts, and diffusion, give other than one output a row."""
        has_drafts = bool(getattr(self.scheduler, "num_spec_tokens", 0))
        num_sampled = getattr(self.scheduler, "num_sampled_tokens_per_step", 1)
        self._has_drafts = has_drafts or num_sampled != 1
        has_connector = getattr(self.scheduler, "connector", None) is not None
        self._has_cache = bool(self.scheduler.kv_cache_manager.enable_caching) or has_connector

    def tell(self, ts_ns: int, output: Any, num_disturbed: int, room: tuple[Any, ...]) -> Formed:
        """Tell the batch of a SchedulerOutput, and count what kind it is.

        `room` is what `Counts` has from the token budget on.
        """
        scheduled = output.num_scheduled_tokens
        names = [*scheduled]
        has_drafts = self._has_drafts or bool(output.scheduled_spec_decode_tokens)
        in_prefill = [*filter(scheduled.__contains__, self.prefilling)]
        counts = _counts(output, in_prefill, room)
        rows: list[BatchRow] = []
        if has_drafts:
            rows = [self._row(name, output) for name in names]
            step = self.recording.formed_drafts(ts_ns, rows, counts)
        else:
            rows, step = self._changed(ts_ns, output, names, in_prefill, counts)
        self.names = None if has_drafts or not names else names
        num_outputs = len(names)
        if rows:
            told = [row for row in rows if row.phase == "prefill"]
            num_outputs -= sum(row.position is None for row in told)
            self._leave_prefill(told)
        return Formed(output, step, rows, num_outputs, num_disturbed, has_drafts)

    def _changed(
        self, ts_ns: int, output: Any, names: list[str], in_prefill: list[str], counts: Counts
    ) -> tuple[list[BatchRow], Step]:
        before = self.names or []
        scheduled = output.num_scheduled_tokens
        gone = [*filterfalse(scheduled.__contains__, before)]
        known = set(before)
        fresh = [*filterfalse(known.__contains__, names)]
        stayed = [*filter(scheduled.__contains__, before)] if gone else before
        if not before or [*stayed, *fresh] != names:
            rows = [self._row(name, output) for name in names]
            return rows, self.recording.formed(ts_ns, rows, counts)
        told = dict.fromkeys([*filter(known.__contains__, in_prefill), *fresh])
        rows = [self._row(name, output) for name in told] if told else []
        return rows, self.recording.formed_from(ts_ns, gone, rows, counts)

    def _row(self, name: str, output: Any) -> BatchRow:
        num_tokens = output.num_scheduled_tokens[name]
        request = self.scheduler.requests[name]
        end = request.num_computed_tokens
        prompt = request.num_prompt_tokens
        drafts = output.scheduled_spec_decode_tokens.get(name)
        num_draft = len(drafts) if drafts else None
        prefill = self.prefilling.get(name)
        if prefill is None:
            position = end - (num_draft or 0) - prompt
            return BatchRow(name, "decode", num_tokens, end - num_tokens, position, prompt,
                            num_draft=num_draft)  # fmt: skip
        (lost, is_fresh), start, known = prefill, end - num_tokens, request.num_tokens
        is_final = end - (num_draft or 0) >= known
        gives = is_final and request.pooling_params is None
        cached = start if is_fresh and self._has_cache else None
        return _new(BatchRow, (
            name, "prefill", num_tokens, start, known - prompt if gives else None, prompt, cached,
            None, num_draft, None, is_final, start < lost,
        ))  # fmt: skip

    def _leave_prefill(self, rows: list[BatchRow]) -> None:
        prefilling = self.prefilling
        for row in rows:
            lost, _ = prefilling.pop(row.request)
            if not row.is_final_chunk:
                prefilling[row.request] = lost, False


def _counts(output: Any, in_prefill: list[str], room: tuple[Any, ...]) -> Counts:
    scheduled, total = output.num_scheduled_tokens, output.total_num_scheduled_tokens
    num_decode = len(scheduled) - len(in_prefill)
    if not in_prefill:
        return Counts("decode" if scheduled else "idle", 0, num_decode, 0, total, *room)
    num_tokens = sum(scheduled[name] for name in in_prefill)
    kind = "mixed" if num_decode else "prefill"
    return Counts(kind, len(in_prefill), num_decode, num_tokens, total - num_tokens, *room)


def tell_outputs(recording: SchedulerRecording, ts_ns: int, formed: Formed,
                 sent: Collection[Any], how: Ran, *, is_as_expected: bool) -> None:  # fmt: skip
    """Tell the outputs of a batch whose rows give one each, or none.

    `sent` has EngineCoreOutputs for each client. Where their number is the expected one, and nobody
    was aborted or preempted meanwhile (`is_as_expected`), every row gave one that was to.
    """
    without: Collection[str] = ()
    if not is_as_expected:
        given = (each for some in sent for each in some.outputs)
        names = {each.request_id for each in given if each.new_token_ids}
        without = [name for name in formed.output.num_scheduled_tokens if name not in names]
    recording.ended(formed.step, ts_ns, without, *how)
    first = [
        (row.request, "first-token", 1, None)
        for row in formed.rows
        if row.position == 0 and row.request not in without
    ]
    if first:
        recording.events(ts_ns, first)


def tell_several(recording: SchedulerRecording, ts_ns: int, formed: Formed,
                 sent: Collection[Any], how: Ran, find: Callable[[str], Any]) -> None:  # fmt: skip
    """Tell the outputs of a batch whose rows may give several; `find` gives a request by its id."""
    drafts = {row.request: row.num_draft for row in formed.rows}
    told = []
    for each in (each for some in sent for each in some.outputs):
        request, count = find(each.request_id), len(each.new_token_ids)
        if request is None or not count:
            continue
        first = request.num_output_tokens - count
        accepted = count - 1 if drafts.get(each.request_id) else None
        told.append(Gave(each.request_id, first, count, accepted))
        if first == 0:
            recording.event("first-token", each.request_id, ts_ns, num_generated=count)
    recording.ended_drafts(formed.step, ts_ns, told, *how)
