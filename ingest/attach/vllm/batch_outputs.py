"""What came of a batch: which of its rows gave outputs, and how many."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from stepscope.ingest.attach.scheduler_recording import Gave, SchedulerRecording
from stepscope.ingest.attach.vllm.batch_rows import Formed
from stepscope.ingest.attach.vllm.model_runs import Ran


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
        without = set(formed.output.num_scheduled_tokens) - names
    recording.ended(formed.step, ts_ns, without, *how)
    for row in formed.rows:
        if row.position == 0 and row.request not in without:
            recording.event("first-token", row.request, ts_ns, num_generated=1)


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
