from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.ingest.attach.sglang.adapters import (
    DRAINED,
    LOADING,
    NO_ADAPTER,
    NO_PLACE,
    Adapters,
)


def scheduler(most: int = 2, *, drained: str = "", loading: str = "") -> Any:
    manager = SimpleNamespace(
        max_loras_per_batch=most, lora_refs={"1f0a": SimpleNamespace(lora_name="french")}
    )
    return SimpleNamespace(
        tp_worker=SimpleNamespace(model_runner=SimpleNamespace(lora_manager=manager)),
        lora_drainer=SimpleNamespace(can_schedule=lambda req: req.lora_id != drained),
        lora_overlap_loader=SimpleNamespace(lora_to_overlap_load_event={loading: None}),
    )


def request(adapter: str | None) -> Any:
    return SimpleNamespace(lora_id=adapter)


@pytest.mark.parametrize(("number", "name"), [("1f0a", "french"), ("gone", "gone"), (None, None)])
def test_an_adapter_is_called_as_clients_call_it_while_it_is_loaded(
    number: str | None, name: str | None
) -> None:
    assert Adapters(scheduler()).name_of(number) == name


def test_a_scheduler_without_adapters_has_no_names() -> None:
    assert Adapters(SimpleNamespace()).name_of("1f0a") == "1f0a"


def test_whose_adapter_does_not_fit_lacks_a_place_among_those_in_use() -> None:
    short = Adapters(scheduler(most=2)).short(request("c"), {"a", None})

    assert short == ("lora", NO_PLACE, 1, 0, None)


def test_whose_adapter_is_drained_waits_for_that_though_it_is_in_use() -> None:
    short = Adapters(scheduler(drained="a")).short(request("a"), {"a"})

    assert (short.resource, short.reason, short.needed) == ("lora", DRAINED, None)


def test_whose_adapter_is_on_its_way_waits_for_that() -> None:
    short = Adapters(scheduler(loading="c")).short(request("c"), {"a"})

    assert (short.resource, short.reason) == ("lora", LOADING)


def test_where_there_would_be_a_place_it_is_not_said_that_there_is_none() -> None:
    short = Adapters(scheduler(most=4)).short(request("c"), {"a"})

    assert (short.resource, short.reason, short.needed) == ("lora", NO_ADAPTER, None)
