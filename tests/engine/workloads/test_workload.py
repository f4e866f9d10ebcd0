from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from stepscope.engine.workloads.workload import (
    RequestSpec,
    Workload,
    bursty,
    fixed,
    identical,
    log_normal,
    poisson,
)
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.times import SECOND
from tests.engine.drawn_requests import requests
from tests.looped import looped


@given(requests)
def test_a_workload_comes_back_from_json_as_it_was(specs: list[RequestSpec]) -> None:
    workload = Workload(specs)
    assert Workload.from_dict(workload.as_dict()).specs == workload.specs


def test_a_workload_comes_back_from_a_file(tmp_path: Path) -> None:
    workload = bursty(5, 2, SECOND, fixed(3, 4), seed=1).due(9)
    workload.save(tmp_path / "w.json")
    assert Workload.of(tmp_path / "w.json").specs == workload.specs
    assert workload.last_deadline_ns == 9


def test_two_requests_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="same id"):
        Workload([RequestSpec("a", 0, 1, 1), RequestSpec("a", 1, 1, 1)])


def test_the_first_requests_are_those_that_arrive_first() -> None:
    workload = Workload(RequestSpec(name, at, 1, 1) for name, at in [("b", 7), ("a", 3), ("c", 9)])
    assert [spec.id for spec in workload.first(2).specs] == ["a", "b"]
    assert len(workload.first(99)) == 3


def test_a_faster_workload_arrives_and_is_due_sooner() -> None:
    workload = Workload([RequestSpec("a", 10, 1, 1, deadline_ns=50), RequestSpec("b", 20, 1, 1)])
    arrivals = [(spec.arrival_ns, spec.deadline_ns) for spec in workload.faster(2).specs]
    assert arrivals == [(5, 25), (10, None)]


@looped("times", [0, -1, float("nan"), float("inf")])
def test_a_workload_cannot_be_sped_up_absurdly(times: float) -> None:
    with pytest.raises(ConfigError, match="times as fast"):
        identical(1, 1, 1).faster(times)


@looped("lengths", [(0, 1), (1, 0), (1 << 25, 1), (1, 10**40)])
def test_a_length_that_no_model_has_is_refused(lengths: tuple[int, int]) -> None:
    with pytest.raises(ConfigError, match="request a: arrival 0"):
        RequestSpec("a", 0, *lengths)


def test_a_workload_runs_again_with_fresh_requests() -> None:
    workload = identical(2, 3, 4, gap_ns=5)
    first, again = list(workload), list(workload)
    assert first[0] is not again[0]
    assert [request.arrival_ns for request in again] == [0, 5]


def test_a_seed_names_a_workload_and_another_seed_another() -> None:
    def draw(seed: int) -> tuple[RequestSpec, ...]:
        return poisson(50, 2.0, log_normal(100, 50), seed).specs

    assert draw(3) == draw(3)
    assert draw(3) != draw(4)


def test_poisson_arrivals_keep_their_rate_and_log_normal_lengths_their_median() -> None:
    specs = poisson(4000, 10.0, log_normal(100, 50), seed=0).specs
    assert specs[-1].arrival_ns / SECOND == pytest.approx(400, rel=0.1)
    assert sorted(spec.prompt_len for spec in specs)[2000] == pytest.approx(100, rel=0.1)
    assert all(1 <= spec.max_tokens <= 8192 for spec in specs)


def test_bursts_arrive_together_within_their_jitter() -> None:
    specs = bursty(10, 4, SECOND, fixed(1, 1), seed=0, jitter_ns=7).specs
    assert [spec.arrival_ns // SECOND for spec in specs] == [0] * 4 + [1] * 4 + [2] * 2
    assert max(spec.arrival_ns % SECOND for spec in specs) <= 7
