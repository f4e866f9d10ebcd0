"""A scheduler of vLLM, called as its engine calls it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stepscope.ingest.replay.scheduler_calls import Formed, Row
from stepscope.ingest.replay.script import ERROR, LENGTH, Asked
from stepscope.ingest.replay.vllm.building import build
from stepscope.ingest.replay.vllm.content_hashes import ContentHashes
from stepscope.ingest.replay.vllm.fakes import FakeGrammar, FakeGrammars, FakeStructuredOutput

TOKEN, LAST = 1, 2
"""Every sampled token, and the one that ends a request."""
Json = dict[str, Any]


class VllmScheduler:
    """The scheduler of the installed vLLM; see `Scheduler` in `scheduler_calls.py`."""

    def __init__(self, config: Json) -> None:
        _let_vllm_take(FakeGrammar)
        self._grammars = FakeGrammars()
        self.scheduler, self.unknown = build(config, self._grammars)
        self.is_async = bool(config.get("async_scheduling"))
        self.num_drafts = int(config.get("num_spec_tokens") or 0)
        self._hashes = ContentHashes(
            int(config.get("hash_block_size") or config["block_size"]),
            int(config.get("content_block_size") or config["block_size"]),
        )
        self._caches = bool(self.scheduler.cache_config.enable_prefix_caching)
        self.tell_dummy: Callable[[int], None] = lambda _: None
        self._loras: dict[str, Any] = {}

    def add(self, asked: Asked) -> None:
        """Make vLLM's request of it, and add it."""
        from vllm import SamplingParams
        from vllm.v1.request import Request

        sampling = SamplingParams(
            max_tokens=asked.max_tokens, stop_token_ids=[LAST], detokenize=False
        )
        request = Request(**_taken(
            Request, request_id=asked.request, prompt_token_ids=[TOKEN] * asked.prompt_len,
            sampling_params=sampling, pooling_params=None, eos_token_id=None,
            arrival_time=asked.arrival_ns / 1e9, priority=asked.priority or 0,
            block_hasher=self._hasher(asked) if self._caches else None,
            lora_request=self._lora(asked.lora),
        ))  # fmt: skip
        if asked.has_grammar:
            request.structured_output_request = FakeStructuredOutput()
            request.status = _waits_for_grammar()
        self.scheduler.add_request(request)

    def ready(self, request: str) -> None:
        """Its grammar is compiled."""
        if (found := self.scheduler.requests.get(request)) is not None:
            found.structured_output_request.grammar = FakeGrammar(self._grammars.rejected)

    def schedule(self, *, is_throttled: bool) -> Formed:
        """Form the next batch."""
        output = self.scheduler.schedule(True) if is_throttled else self.scheduler.schedule()
        drafts = output.scheduled_spec_decode_tokens
        rows = tuple(
            self._row(request, num_tokens, len(drafts.get(request, ())))
            for request, num_tokens in output.num_scheduled_tokens.items()
        )
        return Formed(rows, output)

    def dummy(self, began_ns: int) -> None:
        """Nothing is asked of the scheduler; it is recorded as it was."""
        self.tell_dummy(began_ns)

    def update(self, formed: Formed, tokens: Mapping[str, int], ends: Mapping[str, str]) -> None:
        """Give the scheduler so many tokens for each request of the batch."""
        self._grammars.rejected.update(each for each, how in ends.items() if how == ERROR)
        sampled = [
            _sampled(tokens.get(row.request, 0), ends.get(row.request)) for row in formed.rows
        ]
        self.scheduler.update_from_output(formed.handle, _model_output(formed.rows, sampled))
        self._grammars.rejected.clear()
        for request, how in ends.items():
            if request in self.scheduler.requests:
                self._finish(request, how)

    def propose(self, drafts: Mapping[str, int]) -> None:
        """So many drafts for each."""
        from vllm.v1.outputs import DraftTokenIds

        named = [request for request in drafts if request in self.scheduler.requests]
        self.scheduler.update_draft_token_ids(
            DraftTokenIds(named, [[TOKEN] * drafts[request] for request in named])
        )

    def abort(self, request: str) -> None:
        """Its client has gone."""
        self._finish(request, "abort")

    def has_work(self) -> bool:
        """Tell whether any request is unfinished, or its end untold."""
        return bool(self.scheduler.has_requests())

    def open_requests(self) -> Sequence[str]:
        """Whom the scheduler still knows."""
        return list(self.scheduler.requests)

    def _finish(self, request: str, how: str) -> None:
        from vllm.v1.request import RequestStatus

        names = {ERROR: "FINISHED_ERROR", LENGTH: "FINISHED_LENGTH_CAPPED",
                 "stop": "FINISHED_STOPPED"}  # fmt: skip
        status = getattr(RequestStatus, names.get(how, ""), RequestStatus.FINISHED_ABORTED)
        self.scheduler.finish_requests([request], status)

    def _row(self, request: str, num_tokens: int, num_drafts: int) -> Row:
        found = self.scheduler.requests[request]
        # `num_computed_tokens` has been moved on by this batch already.
        num_computed = found.num_computed_tokens - num_tokens
        samples = found.num_computed_tokens - num_drafts >= found.num_tokens
        return Row(request, num_tokens, num_computed, samples, num_drafts)

    def _lora(self, name: str | None) -> Any:
        """The adapter of that name, where the scheduler counts adapters."""
        if name is None or self.scheduler.lora_config is None:
            return None
        if name not in self._loras:
            from vllm.lora.request import LoRARequest

            self._loras[name] = LoRARequest(name, len(self._loras) + 1, "not loaded")
        return self._loras[name]

    def _hasher(self, asked: Asked) -> Callable[[Any], list[Any]]:
        """A hash for each full block of a request: what it holds, as far as the trace knows."""

        def hashes(request: Any) -> list[Any]:
            have = len(getattr(request, "block_hashes", ()))
            return list(self._hashes.of(asked.contents, have, request.num_tokens))

        return hashes


def _taken(kind: Any, **given: Any) -> Json:
    takes = inspect.signature(kind.__init__).parameters
    return {name: value for name, value in given.items() if name in takes}


def _let_vllm_take(grammar: type) -> None:
    """Have `grammar` count as one of vLLM's own: schedulers of 0.24 to 0.26 ask for the class."""
    from vllm.v1.structured_output.backend_types import StructuredOutputGrammar

    StructuredOutputGrammar.register(grammar)


def _waits_for_grammar() -> Any:
    from vllm.v1.request import RequestStatus

    names = ("WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR", "WAITING_FOR_FSM")
    return next(getattr(RequestStatus, name) for name in names if name in RequestStatus.__members__)


def _sampled(num_tokens: int, end: str | None) -> list[int]:
    """Tokens of which the last one ends the request, if it ended by one."""
    tokens = [TOKEN] * num_tokens
    if tokens and end == "stop":
        tokens[-1] = LAST
    return tokens


def _model_output(rows: Sequence[Row], sampled: list[list[int]]) -> Any:
    from vllm.v1.outputs import ModelRunnerOutput

    return ModelRunnerOutput(**_taken(
        ModelRunnerOutput,
        req_ids=[row.request for row in rows],
        req_id_to_index={row.request: at for at, row in enumerate(rows)},
        sampled_token_ids=sampled, logprobs=None, prompt_logprobs_dict={}, pooler_output=[],
    ))  # fmt: skip
