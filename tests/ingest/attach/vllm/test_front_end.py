"""The front end of vLLM: what came when, and when clients were given outputs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stepscope.ingest.attach.recorded import RequestRows
from stepscope.ingest.attach.vllm.exchange import EXCHANGE, Exchange
from stepscope.ingest.attach.vllm.front_end import FrontEnd
from stepscope.ingest.trace import Trace
from tests.ingest.attach.vllm.front_end_stand_in import CAME_S, NOW_NS, Bench, Config, copied


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_request_is_received_when_it_came_under_the_clients_own_id(bench: Bench) -> None:
    bench.client.add_request(bench.request("r-1"))

    assert bench.rows() == [(0, "r-1", "receive", "client-r-1", None, None)]
    trace = Trace.open(bench.recorders[0].path)
    assert trace.lifecycle.collect()["ts_ns"][0] == int(CAME_S * 1e9)


@pytest.mark.parametrize("told", [None, 0.0, 12.5, NOW_NS / 1e9 + 60])
def test_a_time_of_another_clock_is_not_believed(told: float | None, bench: Bench) -> None:
    request = bench.request("r-1")
    request.arrival_time = told

    bench.client.add_request(request)

    bench.rows()
    assert Trace.open(bench.recorders[0].path).lifecycle.collect()["ts_ns"].to_list() == [NOW_NS]


def test_the_first_and_the_last_outputs_are_told_with_how_many_there_were(bench: Bench) -> None:
    bench.client.add_request(bench.request("r-1"))

    for _ in range(3):
        bench.outputs("r-1", num_tokens=2)
    bench.outputs("r-1", ended="length")

    assert [row[4] for row in bench.rows() if row[2] == "deliver"] == [2, 7]


def test_one_that_ends_at_once_is_told_once(bench: Bench) -> None:
    bench.client.add_request(bench.request("r-1"))

    bench.outputs("r-1", ended="length")

    assert [row[2] for row in bench.rows()] == ["receive", "deliver"]


def test_an_end_that_only_the_text_shows_is_told(bench: Bench) -> None:
    bench.client.add_request(bench.request("r-1", stops_at=3))

    for _ in range(5):
        bench.outputs("r-1")

    assert [row[4] for row in bench.rows() if row[2] == "deliver"] == [1, 3]


def test_a_client_that_wants_all_at_the_end_is_given_nothing_before(bench: Bench) -> None:
    bench.client.add_request(bench.request("r-1", kind="FINAL_ONLY"))

    bench.outputs("r-1")
    bench.outputs("r-1", ended="stop")

    assert [row[4] for row in bench.rows() if row[2] == "deliver"] == [2]


def test_nothing_is_delivered_of_what_was_aborted(bench: Bench) -> None:
    bench.client.add_request(bench.request("r-1"))
    bench.processor.abort_requests(["r-1"])

    bench.outputs("r-1", ended="abort")

    assert [row[2] for row in bench.rows()] == ["receive"]


def test_who_is_open_when_the_engine_dies_ends_in_an_error(bench: Bench) -> None:
    for name in ("r-1", "r-2"):
        bench.client.add_request(bench.request(name))
    bench.outputs("r-1", ended="stop")

    bench.processor.propagate_error(RuntimeError("dead"))

    assert [(row[1], row[5]) for row in bench.rows() if row[2] == "error"] == [
        ("r-2", "RuntimeError")
    ]


@pytest.mark.parametrize(
    ("make", "rank"),
    [
        (lambda bench: bench.module.SyncMPClient().add_request, 0),
        (lambda bench: bench.module.DPLBAsyncMPClient().get_core_engine_for_request, 1),
    ],
)
def test_a_request_is_of_the_rank_that_it_was_sent_to(
    make: Callable[[Bench], Callable[[Any], Any]], rank: int, bench: Bench
) -> None:
    make(bench)(bench.request("r-1"))

    assert [row[0] for row in bench.rows()] == [rank]


def test_another_engine_of_the_process_has_another_recording(bench: Bench) -> None:
    bench.client.add_request(bench.request("r-1"))
    type(bench.client)(rank=0).add_request(bench.request("r-2"))

    assert [row[1] for row in bench.rows()] == ["r-1", "r-2"]
    assert len(bench.recorders) == 2


def test_more_input_of_an_open_request_is_not_another_one(bench: Bench) -> None:
    request = bench.request("r-1")

    bench.client.add_request(request)
    bench.client.add_request(request)

    assert len(bench.rows()) == 1


def test_outputs_that_end_until_more_input_comes_are_told(bench: Bench) -> None:
    bench.client.add_request(bench.request("r-1", resumable=True))
    bench.outputs("r-1")
    bench.outputs("r-1")
    bench.outputs("r-1", ended="stop")

    assert [row[2:5:2] for row in bench.rows()][1:] == [("deliver", 1), ("deliver", 3)]


def test_one_that_ends_while_another_begins_is_told_with_it(bench: Bench) -> None:
    bench.client.add_request(bench.request("r-1", stops_at=2))
    bench.outputs("r-1")
    bench.client.add_request(bench.request("r-2"))
    bench.outputs("r-1", "r-2")

    assert [row[1] for row in bench.rows() if row[2] == "deliver"] == ["r-1", "r-2", "r-1"]


def test_a_recorder_that_cannot_be_opened_costs_the_client_nothing(bench: Bench) -> None:
    def refused(_client: Any, _rank: int, _missing: list[str]) -> RequestRows:
        raise OSError("no room")

    bench.front._open_rows = refused
    bench.client.add_request(bench.request("r-1"))
    bench.outputs("r-1", ended="stop")

    assert bench.front.hooks.is_stopped
    assert bench.processor.request_states == {}


def test_a_vllm_without_a_client_is_told_of_by_name() -> None:
    front = FrontEnd(lambda _client, _rank, _missing: pytest.fail("opened"))

    front.watch_clients(ModuleType("vllm"))

    assert "AsyncMPClient.add_request_async" in front.hooks.missing


async def _exchange(bench: Bench, stops_at: int, parts: int) -> list[str]:
    """A server whose layers take a millisecond each way, and what it told its layer."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        bench.now_ns += 10**6
        request = bench.request("r-1", stops_at=stops_at)
        request.arrival_time = bench.now_ns / 1e9
        bench.client.add_request(request)
        for _ in range(parts):
            bench.outputs("r-1")
            await send({"type": "http.response.body", "body": b"data"})
        await send({"type": "http.response.body", "body": b""})

    async def send(_message: Any) -> None:
        bench.now_ns += 10**6

    module: Any = ModuleType("uvicorn.config")
    module.Config = copied(Config)
    config = module.Config(app)  # before the plug-in is loaded
    bench.front.watch_servers(module)
    config.load()
    await config.loaded_app({"type": "http"}, None, send)
    return [row[2] for row in bench.rows()]


@pytest.mark.parametrize(("parts", "events"), [(1, 1), (3, 2)])
def test_a_client_of_a_server_is_given_outputs_when_they_are_written(
    parts: int, events: int, bench: Bench
) -> None:
    told = asyncio.run(_exchange(bench, parts, parts))

    assert told == ["receive", *["deliver"] * events]
    times = Trace.open(bench.recorders[0].path).lifecycle.collect()["ts_ns"].to_list()
    assert times[1] == NOW_NS + 3 * 10**6
    assert times[-1] == NOW_NS + (1 + 2 * parts) * 10**6


def test_a_request_is_received_when_its_exchange_began(bench: Bench) -> None:
    asyncio.run(_exchange(bench, 1, 1))

    trace = Trace.open(bench.recorders[0].path)
    assert trace.lifecycle.collect()["ts_ns"][0] == NOW_NS


def test_several_requests_of_one_exchange_are_told_by_the_front_end_itself(bench: Bench) -> None:
    exchange = Exchange(NOW_NS)
    token = EXCHANGE.set(exchange)
    for name in ("r-1", "r-2"):
        bench.client.add_request(bench.request(name))
    EXCHANGE.reset(token)
    bench.outputs("r-1", "r-2")
    exchange.sent(NOW_NS)

    assert [row[1] for row in bench.rows() if row[2] == "deliver"] == ["r-1", "r-2"]
