"""What runs a decoder for an engine: weights, profiler tags, and the reference to compare with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch.profiler import record_function

from stepscope.engine.executors import Digest, ExecutionFailed
from stepscope.engine.executors.decoding.streams import Streams, next_number
from stepscope.engine.model.decoder import Decoder
from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.model.sampler import Logits, digest, greedy
from stepscope.engine.model.solo import solo
from stepscope.engine.model.stream import Stream
from stepscope.engine.requests.request import Request

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row


class ModelRunner:
    """A decoder, what it has said to whom, and what it says to each of them alone.

    `tagged_steps` are the steps that were given a profiler tag, in order. With `refers`, every
    token's digest has the one of the request's solo run beside it, which is computed for that.
    """

    def __init__(
        self,
        config: ModelConfig,
        faults: frozenset[str] = frozenset(),
        *,
        device: str | None = None,
        refers: bool = True,
    ) -> None:
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        # The matrices are small: threads would wait for each other longer than they compute.
        torch.set_num_threads(1)
        self.decoder = Decoder(config, faults).to(self.device)
        self.streams = Streams(config.vocab_size)
        self.tagged_steps: list[int] = []
        self._refers = refers
        self._solo: dict[str, Stream] = {}

    @contextmanager
    def step(self, batch: Batch, step: int, *, is_halved: bool = False) -> Iterator[None]:
        """Tag a step for the profiler; what fails in it becomes an ExecutionFailed of one line."""
        self.tagged_steps.append(step)
        try:
            with record_function(tag(batch, is_halved=is_halved)):
                yield
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            what = str(error).strip().partition("\n")[0]
            raise ExecutionFailed(
                f"the model failed: {what}",
                where=f"step {step}, {batch.kind}",
                todo="look at the step's segments: stepscope check, stepscope debug",
            ) from error

    def sample(self, request: Request, logits: Logits, place: int = 0) -> tuple[int, Digest]:
        """Return the token that `logits`, [vocab_size], give `place` tokens behind the known."""
        number = next_number(request) + place
        reference = self.solo(request).digests if self._refers else ()
        expected = reference[number - 1] if number <= len(reference) else None
        token = greedy(logits, number, request.eos_after, ends_at_eos=request.ends_at_eos)
        return token, Digest(digest(logits), expected)

    def solo(self, request: Request) -> Stream:
        """Return what the request is answered alone, computed once."""
        if request.id not in self._solo:
            prompt = self.streams.prompt(request)
            self._solo[request.id] = solo(
                self.decoder, prompt, request.max_tokens, request.eos_after,
                ends_at_eos=request.ends_at_eos,
            )  # fmt: skip
        return self._solo[request.id]

    def num_equal_to_solo(self, requests: Iterable[Request]) -> int:
        """Count those whose output, as far as the engine kept it, is that of their solo run."""
        return sum(self._output(request) == self.solo(request).tokens for request in requests)

    def _output(self, request: Request) -> tuple[int, ...]:
        return tuple(self.streams.tokens(request, request.prompt_len, request.num_generated))


def tag(batch: Batch, *, is_halved: bool = False) -> str:
    """Return what a step is called in a profile, in the grammar of `ingest.derive.step_tags`.

    `tbo=1` says that it `is_halved` for two-batch overlap, as in ATOM's labels.
    """
    tbo = " tbo=1" if is_halved else ""
    if batch.kind == "mixed":
        return f"mixed[n_p={batch.num_prefill_tokens} n_d={batch.num_decode_tokens}{tbo}]"
    return segment_tag(batch.kind, batch.rows, tbo)


def segment_tag(phase: str, rows: Sequence[Row], more: str = "") -> str:
    """Return what a batch of one phase, or that part of a mixed one, is called in a profile."""
    tokens = sum(row.num_tokens for row in rows)
    if phase == "prefill":
        return f"prefill[bs={len(rows)} tok={tokens}{more}]"
    return f"decode[bs={len(rows)} tok={tokens} d={len(rows)}{more}]"
