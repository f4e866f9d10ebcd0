"""A Dask cluster reads a fleet as processes here do, to the same bytes."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.check.registry import select
from stepscope.analyzers.fleet.archive.opened import digest_of
from stepscope.analyzers.fleet.dask_pool import DaskPool, check_address
from stepscope.ingest.errors import ConfigError, MissingExtra, StepscopeError
from tests.analyzers.fleet.at_hand import Here, imported, rows
from tests.ingest.derive.collectives.rank_jobs import Look, job, write_job
from tests.looped import looped
from tests.tiers import slow

distributed = pytest.importorskip("distributed")
RULES = select(["COL", "TRC"])

pytestmark = pytest.mark.filterwarnings("ignore")  # what Dask warns of as a cluster ends is its own


@pytest.fixture
def cluster() -> Iterator[Any]:
    """One worker in a process of its own, on loopback."""
    made = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )  # fmt: skip
    yield made
    made.close(timeout=180)


@slow
def test_a_cluster_makes_the_same_archive_and_goes_on_as_a_worker_dies(
    cluster: Any, tmp_path: Path
) -> None:
    ranks = write_job(tmp_path / "job", job(2, num_steps=3), Look(), Look(swapped=4))
    (tmp_path / "job" / "bad.json").write_text('{"traceEvents": [')
    imported(tmp_path / "here", ranks, pool=Here(), rules=RULES)

    pool = DaskPool(cluster.scheduler_address, timeout_s=180)
    first = next(iter(cluster.workers.values()))
    os.kill(first.process.pid, signal.SIGKILL)
    tally = imported(tmp_path / "there", ranks, pool=pool, rules=RULES)
    pool.close()

    assert digest_of(tmp_path / "there") == digest_of(tmp_path / "here")
    assert rows(tmp_path / "there", "findings")
    assert tally.num_checked == 1


def test_a_scheduler_that_goes_is_said_in_a_line(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("{}")
    pool = DaskPool(cluster.scheduler_address, timeout_s=180)
    # The client tries again for so long as it was given to connect at first.
    monkeypatch.setattr(pool._client, "_timeout", 0.5)
    cluster.close(timeout=180)

    with pytest.raises(StepscopeError, match="what was finished is in the archive"):
        imported(tmp_path / "archive", tmp_path / "file", pool=pool, rules=RULES)
    pool.close()


def test_where_no_scheduler_answers_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.analyzers.fleet.dask_pool.CONNECT_S", 0.3)

    with pytest.raises(ConfigError, match="no scheduler answers"):
        DaskPool("tcp://127.0.0.1:1", timeout_s=180)


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    with pytest.raises(MissingExtra, match=r"pip install 'stepscope\[distributed\]'"):
        DaskPool("tcp://127.0.0.1:1", timeout_s=180)


@looped("address", ["tcp://127.0.0.1:8786", "tcp://[::1]:8786", "tls://10.0.0.7:8786"])
def test_addresses_that_are_safe_to_speak_to(address: str) -> None:
    check_address(address, insecure=False)


@looped("address", ["tcp://10.0.0.7:8786", "tcp://cluster.example:8786"])
def test_another_machine_is_spoken_to_by_tls_unless_that_is_asked_for(address: str) -> None:
    with pytest.raises(ConfigError, match="use tls://, or add --insecure"):
        check_address(address, insecure=False)

    check_address(address, insecure=True)


@looped("address", ["10.0.0.7:8786", "inproc://a", "tcp://a", "http://a:1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="no address of a scheduler"):
        check_address(address, insecure=True)
