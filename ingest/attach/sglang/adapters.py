"""LoRA adapters: what a request's is called, and why it keeps a request waiting."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from stepscope.ingest.attach.sglang.waits import Short

NO_PLACE = "as many adapters as fit are in use"
DRAINED = "its adapter takes no more of this length: its place is kept for one that waited too long"
LOADING = "its adapter is being loaded"
NO_ADAPTER = "its adapter does not fit beside those that are in use"


class Adapters:
    """What the adapters of a scheduler are called, and which of them stand in whose way."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def name_of(self, number: str | None) -> str | None:
        """Give the name that clients know; the number where an adapter is not loaded any more."""
        if number is None:
            return None
        ref = getattr(self._manager(), "lora_refs", {}).get(number)
        return getattr(ref, "lora_name", None) or number

    def short(self, req: Any, in_use: Collection[str | None]) -> Short:
        """Give why a request's adapter keeps it out, which has been answered against it."""
        drainer = getattr(self._scheduler, "lora_drainer", None)
        if drainer and not drainer.can_schedule(req):
            return Short("lora", DRAINED)
        loader = getattr(self._scheduler, "lora_overlap_loader", None)
        if loader and req.lora_id in loader.lora_to_overlap_load_event:
            return Short("lora", LOADING)
        most = getattr(self._manager(), "max_loras_per_batch", None)
        if most is not None and len({*in_use, req.lora_id}) > most:
            return Short("lora", NO_PLACE, 1, max(most - len(in_use), 0))
        return Short("lora", NO_ADAPTER)

    def _manager(self) -> Any:
        worker = getattr(self._scheduler, "tp_worker", None)
        return getattr(getattr(worker, "model_runner", None), "lora_manager", None)
