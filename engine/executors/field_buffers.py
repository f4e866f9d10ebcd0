"""The buffers that `staging.py` tells of, as tensors: what a fault does to them is what happens.

With CUDA the host's buffers are pinned, copies run on a stream of their own, and who gets there
first is real. On a CPU copies are instant, so what a late copy would have taken is put in its place
by the model of the queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from stepscope.engine.executors.split import FIELDS, Prepared, Segment
from stepscope.engine.executors.staging import Staged

Fields = Mapping[str, Tensor | None]


class FieldBuffers:
    """One buffer on the host and one on `device` for each field, of up to `max_tokens` tokens."""

    def __init__(self, max_tokens: int, device: str) -> None:
        self._is_cuda = device != "cpu"
        self._copies: torch.cuda.Stream | None = None
        if self._is_cuda:
            self._copies = torch.cuda.Stream()  # type: ignore[no-untyped-call] # torch's own
        self._pinned = {
            name: torch.zeros(max_tokens, dtype=torch.int64, pin_memory=self._is_cuda)
            for name in FIELDS
        }
        self._shared = {
            name: torch.zeros(max_tokens, dtype=torch.int64, device=device) for name in FIELDS
        }

    def stage(self, prepared: Prepared, values: Mapping[str, Sequence[int]]) -> list[Fields]:
        """Return the fields of each segment as they are on the device; `values` are the batch's."""
        tensors = {name: torch.tensor(field) for name, field in values.items()}
        segments = prepared.segments
        staged = []
        for place, (segment, how) in enumerate(zip(segments, prepared.staged, strict=True)):
            following = segments[place + 1] if place + 1 < len(segments) else None
            staged.append(self._stage(segment, how, following, tensors))
        return staged

    def _stage(
        self, segment: Segment, how: Staged, following: Segment | None, values: dict[str, Tensor]
    ) -> Fields:
        fields: dict[str, Tensor | None] = {}
        for name, given in segment.fields.items():
            if given is None:
                fields[name] = None
                continue
            arriving = values[name][given.start : given.stop].clone()
            late = how.overwritten.get(name) if following and not self._is_cuda else None
            if late and following and (other := following.fields[name]):
                arriving[late.start : late.stop] = values[name][other.start :][
                    late.start : late.stop
                ]
            view = self._copied(name, arriving)
            fields[name] = view.clone() if how.is_cloned else view
        if self._is_cuda and (how.is_waited_for or not following):
            torch.cuda.synchronize()
        return fields

    def _copied(self, name: str, arriving: Tensor) -> Tensor:
        pinned = self._pinned[name][: len(arriving)]
        view = self._shared[name][: len(arriving)]
        pinned.copy_(arriving)
        if self._copies is None:
            return view.copy_(pinned)
        with torch.cuda.stream(self._copies):
            view.copy_(pinned, non_blocking=True)
        torch.cuda.current_stream().wait_stream(self._copies)
        return view
