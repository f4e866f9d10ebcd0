"""In the place of the worker that runs the model: it gives the tokens that it was told to give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ScriptedWorker:
    """What a scheduler calls to run a batch; all else it asks is asked of the real worker."""

    def __init__(self, real: Any, next_token: Callable[[str], int]) -> None:
        self._real = real
        self._next_token = next_token

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def forward_batch_generation(self, batch: Any, **_: Any) -> Any:
        """Give a token for each request of the batch."""
        import torch
        from sglang.srt.layers.logits_processor import LogitsProcessorOutput
        from sglang.srt.managers.utils import GenerationBatchResult

        tokens = torch.tensor([self._next_token(req.rid) for req in batch.reqs], dtype=torch.int64)
        return GenerationBatchResult(
            logits_output=LogitsProcessorOutput(next_token_logits=None), next_token_ids=tokens
        )
