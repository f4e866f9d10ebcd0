"""Stands in for the front end of vLLM: outputs, clients, a server, and what is recorded of them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from stepscope.ingest.attach.recorded import RequestRows
from stepscope.ingest.attach.vllm.front_end import FrontEnd
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.trace import Trace

NOW_NS = 1_800_000_000 * 10**9
CAME_S = NOW_NS / 1e9 - 2.0


class OutputProcessor:
    """As vLLM's: states of open requests, from which those that end are gone."""

    def __init__(self) -> None:
        self.request_states: dict[str, Any] = {}

    def process_outputs(self, engine_core_outputs: list[Any], *_: Any) -> Any:
        stopped = []
        for output in engine_core_outputs:
            state = self.request_states.get(output.request_id)
            if state is None:
                continue
            state.num_tokens += output.num_tokens
            if state.resumable:  # more input may come: it stays
                continue
            if output.finish_reason or state.num_tokens >= state.stops_at:
                del self.request_states[output.request_id]
                stopped += [] if output.finish_reason else [output.request_id]
        return SimpleNamespace(reqs_to_abort=stopped)

    def abort_requests(self, names: list[str], internal: bool = False) -> list[str]:
        return [name for name in names if self.request_states.pop(name, None)]

    def propagate_error(self, e: Exception) -> None:
        self.request_states.clear()


class InprocClient:
    def __init__(self, rank: int = 0) -> None:
        parallel = SimpleNamespace(data_parallel_index=rank)
        self.engine_core = SimpleNamespace(vllm_config=SimpleNamespace(parallel_config=parallel))

    def add_request(self, request: Any) -> None: ...


class SyncMPClient:
    core_engine = b"\x00\x00"

    def add_request(self, request: Any) -> None: ...


class DPLBAsyncMPClient:
    def get_core_engine_for_request(self, request: Any) -> bytes:
        return b"\x01\x00"


class Config:
    """As uvicorn's: when it is loaded, what it serves is set."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def load(self) -> None:
        self.loaded_app = self.app


class Bench:
    """A front end that is followed, its clock, and what was recorded of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now_ns = NOW_NS
        self.front = FrontEnd(self._opened, lambda: self.now_ns)
        self.recorders: list[Recorder] = []
        kinds = (OutputProcessor, InprocClient, SyncMPClient, DPLBAsyncMPClient)
        self.module: Any = ModuleType("vllm")
        vars(self.module).update({kind.__name__: copied(kind) for kind in kinds})
        self.processor = self.module.OutputProcessor()
        self.client = self.module.InprocClient()
        self.front.watch_outputs(self.module)
        self.front.watch_clients(self.module)

    def request(
        self, name: str, stops_at: int = 99, kind: str = "DELTA", *, resumable: bool = False
    ) -> Any:
        state = SimpleNamespace(
            num_tokens=0, stops_at=stops_at, output_kind=SimpleNamespace(name=kind),
            resumable=resumable,
        )  # fmt: skip
        state.detokenizer = SimpleNamespace(num_output_tokens=lambda: state.num_tokens)
        self.processor.request_states[name] = state
        return SimpleNamespace(
            request_id=name, external_req_id=f"client-{name}", arrival_time=CAME_S,
            resumable=resumable,
        )  # fmt: skip

    def outputs(self, *names: str, ended: str | None = None, num_tokens: int = 1) -> None:
        self.now_ns += 10**6
        self.processor.process_outputs(
            [
                SimpleNamespace(request_id=name, finish_reason=ended, num_tokens=num_tokens)
                for name in names
            ]
        )

    def rows(self) -> list[tuple[Any, ...]]:
        for recorder in self.recorders:
            recorder.close()
        columns = ["rank", "request", "event", "external_id", "num_generated", "cause"]
        traces = [Trace.open(recorder.path) for recorder in self.recorders]
        return [row for trace in traces for row in trace.lifecycle.select(columns).collect().rows()]

    def _opened(self, _client: Any, rank: int, _missing: list[str]) -> RequestRows:
        recorder = Recorder(
            self.folder / f"{len(self.recorders)}.trace", producer="vllm", rank=rank
        )
        self.recorders.append(recorder)
        return RequestRows(recorder)


def copied(kind: type) -> type:
    """A class of the same methods, so that what is put around them stays in a test."""
    return type(
        kind.__name__, (kind,), {name: held for name, held in vars(kind).items() if callable(held)}
    )
