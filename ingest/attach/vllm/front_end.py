"""Tells what vLLM's front end does: when a request came, and when its client was given outputs.

The front end runs in the process of the API, beside the engine's or in the same one. Its rows are
part of the trace of the rank that the request was sent to (decision 0038), and have its own clock,
which on one machine is the engine's. In one process with the engine they are the engine's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import filterfalse
from types import ModuleType
from typing import Any

from stepscope.ingest.attach.hooks import Hooks
from stepscope.ingest.attach.recorded import RequestRows
from stepscope.ingest.attach.vllm.engine_config import FOLLOWED
from stepscope.ingest.attach.vllm.exchange import EXCHANGE, Exchange, Exchanges
from stepscope.ingest.recording.forms.texts import keys_left

OLDEST_NS = 3_600 * 10**9
"""A request that says it came earlier than this before it was sent has another clock."""
RECORDERS = "_stepscope"
"""A client's attribute that holds what records for each rank."""
Open = Callable[[Any, int, list[str]], RequestRows | None]
"""Gives a front end what records its rows, of a client of the engine, a rank and what is missing in
this version of vLLM; None: it has none."""


class FrontEnd:
    """Follows one process's front end; all is called by the thread that runs its loop."""

    def __init__(self, open_rows: Open, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.hooks = Hooks(self._failed)
        self._open_rows = open_rows
        self._now_ns = now_ns
        self._opened_rows: list[RequestRows] = []
        self._of: dict[str, RequestRows] = {}
        self._exchanges: dict[str, Exchange] = {}
        self._begun: dict[str, Any] = {}
        self._resumable: set[str] = set()
        """Whose outputs may end and go on when more input comes."""

    def watch_outputs(self, module: ModuleType) -> None:
        """Follow the processors of outputs that this module's class makes."""
        processor, hooks, takes = module.OutputProcessor, self.hooks, FOLLOWED["outputs"]
        name = "process_outputs"
        hooks.instead(processor, name, takes[name], self._processing)
        hooks.around(processor, "abort_requests", takes["abort_requests"], after=self._aborted)
        hooks.around(processor, "propagate_error", takes["propagate_error"], before=self._failing)

    def watch_clients(self, module: ModuleType) -> None:
        """Follow the clients by which this module's classes send requests to engines."""
        if (in_process := getattr(module, "InprocClient", None)) is None:
            self.hooks.missing.append("InprocClient.add_request")
        else:
            name, takes = "add_request", FOLLOWED["client"]["add_request"]
            self.hooks.instead(in_process, name, takes, self._sending_in_process)
        for client, name in (
            ("SyncMPClient", "add_request"),
            ("AsyncMPClient", "add_request_async"),
        ):
            self._around(module, client, name, before=self._sending)
        for client in ("DPAsyncMPClient", "DPLBAsyncMPClient"):
            self._around(module, client, "get_core_engine_for_request", after=self._routed)

    def watch_servers(self, module: ModuleType) -> None:
        """Follow what clients send and get of the servers that this module's class configures.

        vLLM's own modules have each other's functions by name before a plug-in is loaded.
        """
        self.hooks.around(module.Config, "load", after=self._loaded)

    # ── hooks ────────────────────────────────────────────────────────────────────────────────

    def _around(self, module: ModuleType, owner: str, name: str, **calls: Any) -> None:
        if (found := getattr(module, owner, None)) is None:
            self.hooks.missing.append(f"{owner}.{name}")
        elif name in vars(found):  # what is inherited is followed where it is defined
            self.hooks.around(found, name, FOLLOWED["client"][name], **calls)

    def _loaded(self, _: object, config: Any) -> None:
        config.loaded_app = Exchanges(config.loaded_app, now_ns=self._now_ns)

    def _sending_in_process(self, add: Callable[..., Any]) -> Callable[..., Any]:
        """The engine's recorder tells that a request was received as it tells that it arrived:
        what does so is in the processor's caches then.
        """
        hooks, of = self.hooks, self._of

        def hooked(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            rows = None
            try:
                name = request.request_id
                if not (hooks.is_stopped or name in of):  # that would be more of its input
                    known = client.__dict__.get(RECORDERS)
                    if known is None:
                        rows = self._opened(client, _rank_in_process(client.engine_core))
                    else:
                        (rows,) = known.values()
                if rows is not None:
                    of[name] = rows
                    rows.received[name] = self._came_ns(request), request.external_req_id
            except Exception as error:
                hooks.stop(error)
            try:
                return add(client, request, *args, **kwargs)
            finally:
                if rows is not None and rows.received:  # it has not arrived
                    hooks.safely(rows.tell_received, name)

        return hooked

    def _sending(self, client: Any, request: Any) -> None:
        self._received(client, _rank(client.core_engine), request)

    def _routed(self, engine: Any, client: Any, request: Any) -> None:
        self._received(client, _rank(engine), request)

    def _received(self, client: Any, rank: int, request: Any) -> None:
        name, of_client = request.request_id, vars(client).get(RECORDERS) or {}
        if name in self._of:  # more input of a request that is open
            return
        rows = of_client[rank] if rank in of_client else self._opened(client, rank)
        if rows is None:
            return
        self._of[name] = rows
        rows.arrival(
            None, self._came_ns(request), name, "receive", None, None, None, None, None,
            request.external_req_id,
        )  # fmt: skip

    def _came_ns(self, request: Any) -> int:
        """When the front end took it, as vLLM itself counts; now, where a client has told a time
        that is not one of this clock.
        """
        now_ns, exchange = self._now_ns(), EXCHANGE.get()
        came_ns = int((getattr(request, "arrival_time", None) or 0) * 1e9)
        if not now_ns - OLDEST_NS <= came_ns <= now_ns:
            came_ns = now_ns
        if getattr(request, "resumable", False):
            self._resumable.add(request.request_id)
        if exchange is not None:
            came_ns = min(came_ns, exchange.began_ns)
            exchange.requests.append(request.request_id)
            self._exchanges[request.request_id] = exchange
        return came_ns

    def _processing(self, process: Callable[..., Any]) -> Callable[..., Any]:
        """Outputs are made text of and given to clients: whoever begins or ends is told of.

        Where all have begun, whoever ends is not among the states then: no output is looked at.
        """
        hooks, now_ns, begun, resumable = self.hooks, self._now_ns, self._begun, self._resumable

        def hooked(processor: Any, engine_core_outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if hooks.is_stopped:
                return process(processor, engine_core_outputs, *args, **kwargs)
            due: list[tuple[str, Any]] | None = None
            num_states = 0
            try:
                states = processor.request_states
                num_states = len(states)
                if len(begun) != num_states or resumable:
                    due = _due(engine_core_outputs, states, begun)
            except Exception as error:
                hooks.stop(error)
            result = process(processor, engine_core_outputs, *args, **kwargs)
            try:
                if not hooks.is_stopped and (due is not None or len(states) != num_states):
                    if due is None:
                        if (gone := keys_left(begun, states)) is None:
                            gone = [*filterfalse(states.__contains__, begun)]
                        due = [(name, begun[name]) for name in gone]
                    if result.reqs_to_abort:
                        # Their ends were found in their text, which the engine knows nothing of.
                        due += [
                            (name, begun[name]) for name in result.reqs_to_abort if name in begun
                        ]
                    self._processed(now_ns(), due, states)
            except Exception as error:
                hooks.stop(error)
            return result

        return hooked

    def _processed(self, now_ns: int, due: Sequence[tuple[str, Any]], states: Any) -> None:
        begun, rows_of, exchanges = self._begun, self._of, self._exchanges
        for name, state in dict(due).items() if len(due) > 1 else due:
            if state is None:
                continue
            has_ended = name not in states
            exchange = exchanges.get(name) if exchanges else None
            if exchange is not None and len(exchange.requests) == 1:
                self._hand_over(exchange, name, state)
            elif (has_ended or _gets_all(state)) and (rows := rows_of.get(name)) is not None:
                rows.events(None, now_ns, ((name, "deliver", _num_given(state), None),))
            if has_ended:
                self._forget(name)
            else:
                begun[getattr(state, "request_id", name)] = state  # the object that is its key

    def _hand_over(self, exchange: Exchange, name: str, state: Any) -> None:
        """Its outputs reach the client when the server has written them; each is told once."""
        rows = self._of.get(name)
        if exchange.on_sent is not None or rows is None:
            return
        tell = rows.event

        def sent(ts_ns: int, is_last: bool) -> None:
            if not is_last or ts_ns != exchange.first_ns:
                self.hooks.safely(tell, None, ts_ns, name, "deliver", _num_given(state))

        exchange.on_sent = sent

    def _aborted(self, aborted: Sequence[str], _: object) -> None:
        for name in aborted:
            self._forget(name)

    def _failing(self, processor: Any, error: BaseException) -> None:
        """The engine is dead: whoever is open ends in an error, which the engine can't tell."""
        now_ns = self._now_ns()
        for name in list(processor.request_states):
            if (rows := self._of.get(name)) is not None:
                rows.event(None, now_ns, name, "error", cause=type(error).__name__)
            self._forget(name)

    def _forget(self, name: str) -> None:
        self._of.pop(name, None)
        self._begun.pop(name, None)
        if self._exchanges:
            self._exchanges.pop(name, None)
        if self._resumable:
            self._resumable.discard(name)

    def _opened(self, client: Any, rank: int) -> RequestRows | None:
        rows = self._open_rows(client, rank, self.hooks.missing)
        self._opened_rows += [rows] if rows is not None else []
        vars(client).setdefault(RECORDERS, {})[rank] = rows
        return rows

    def _failed(self, error: Exception) -> None:
        for rows in self._opened_rows:
            rows.failed(error)


def _due(outputs: Sequence[Any], states: Any, begun: Any) -> list[tuple[str, Any]]:
    """Who begins or ends with these outputs, as the engine has it."""
    return [
        (output.request_id, states.get(output.request_id))
        for output in outputs
        if output.finish_reason is not None or output.request_id not in begun
    ]


def _num_given(state: Any) -> int | None:
    """How many outputs the client was given; None where nothing made text of them."""
    text = getattr(state, "detokenizer", None)
    return text.num_output_tokens() if text is not None else None


def _gets_all(state: Any) -> bool:
    """Whether the client is given outputs as they come, and not all of them at the end."""
    kind = getattr(getattr(state, "output_kind", None), "name", None)
    return kind != "FINAL_ONLY"


def _rank(identity: bytes) -> int:
    """The engine's rank: by which its messages are addressed."""
    return int.from_bytes(identity, "little")


def _rank_in_process(core: Any) -> int:
    return int(getattr(core.vllm_config.parallel_config, "data_parallel_index", 0) or 0)
