"""The buffers that `staging.py` tells of, as tensors: what a fault does to them is what happens.

With CUDA the host's buffers are pinned, copies run on a stream of their own, and who gets there
first is real. On a CPU copies are instant, so what a late copy would have taken is put in its place
by the model of the queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from stepscope.engine.executors.segments.split import Prepared
from stepscope.engine.executors.segments.staging import Staged

Fields = Mapping[str, Tensor | None]
Values = Mapping[str, Sequence[int] | None]


class FieldBuffers:
    """One buffer on the host and one on `device` for each field, of as many entries as it takes.

    A field has its own from when it is first staged.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._is_cuda = device != "cpu"
        self._copies: torch.cuda.Stream | None = None
        if self._is_cuda:
            self._copies = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's own
        self._pinned: dict[str, Tensor] = {}
        self._shared: dict[str, Tensor] = {}

    def stage(self, prepared: Prepared, values: Sequence[Values]) -> list[Fields]:
        """Return the fields of each segment as they are on the device; `values` are as prepared."""
        self._make_room(values)
        staged = []
        for place, how in enumerate(prepared.staged):
            following = values[place + 1] if place + 1 < len(values) else None
            staged.append(self._stage(values[place], how, following))
        return staged

    def _stage(self, values: Values, how: Staged, following: Values | None) -> Fields:
        fields: dict[str, Tensor | None] = {}
        for name, given in values.items():
            if given is None:
                fields[name] = None
                continue
            arriving = torch.tensor(given, dtype=torch.int64)
            late = how.overwritten.get(name) if following and not self._is_cuda else None
            if late and following and (other := following[name]):
                arriving[late.start : late.stop] = torch.tensor(other[late.start : late.stop])
            view = self._shared[name][: len(arriving)]
            if name not in how.stale:
                self._copy(name, arriving, view)
            fields[name] = view.clone() if name in how.cloned else view
        if self._is_cuda and (how.is_waited_for or not following):
            torch.cuda.synchronize()
        return fields

    def _copy(self, name: str, arriving: Tensor, view: Tensor) -> None:
        pinned = self._pinned[name][: len(arriving)]
        pinned.copy_(arriving)
        if self._copies is None:
            view.copy_(pinned)
            return
        with torch.cuda.stream(self._copies):
            view.copy_(pinned, non_blocking=True)
        torch.cuda.current_stream().wait_stream(self._copies)

    def _make_room(self, values: Sequence[Values]) -> None:
        """Let the buffers grow to the longest fields; what they hold stays."""
        for name in values[0]:
            for buffers, is_pinned in ((self._pinned, True), (self._shared, False)):
                buffers.setdefault(name, self._empty(0, is_pinned=is_pinned))
            most = max(len(each[name] or ()) for each in values)
            if most > len(self._pinned[name]):
                if self._is_cuda:
                    torch.cuda.synchronize()
                for buffers, is_pinned in ((self._pinned, True), (self._shared, False)):
                    grown = self._empty(2 * most, is_pinned=is_pinned)
                    grown[: len(buffers[name])] = buffers[name]
                    buffers[name] = grown

    def _empty(self, num_entries: int, *, is_pinned: bool) -> Tensor:
        if is_pinned:
            return torch.zeros(num_entries, dtype=torch.int64, pin_memory=self._is_cuda)
        return torch.zeros(num_entries, dtype=torch.int64, device=self._device)
