"""STV017: requests pile up between the servers that prefill and decode."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.stv.stv017_transfer_backlog import TransferBacklog
from tests.analyzers.engine_reports import decode_server, log_of, prefill_server, sglang
from tests.looped import looped


def test_transfers_that_do_not_get_through_are_found(tmp_path: Path) -> None:
    lines = [decode_server(2 * n, 0, 40 + 4 * n) for n in range(15)]

    (found,) = TransferBacklog().check(log_of(tmp_path, *lines))

    assert found.message == (
        "#transfer-req stood at 40 or more for 15 reports (28.0 s), 96 at the end: KV is reserved "
        "on the decode server, and theirs has not arrived"
    )
    assert found.evidence["at the beginning"] == 40


def test_what_a_queue_of_one_name_means_depends_on_the_server(tmp_path: Path) -> None:
    of_prefill = log_of(tmp_path, *(prefill_server(n, 18 + n, 1) for n in range(12)))
    (handshake,) = TransferBacklog().check(of_prefill)
    of_decode = log_of(tmp_path, *(decode_server(n, 18 + n, 1) for n in range(12)))
    (no_room,) = TransferBacklog().check(of_decode)

    assert handshake.message.endswith("prefill and decode have not found each other")
    assert no_room.message.endswith("no KV is free for them on the decode server")


@looped(
    "lines",
    [
        pytest.param([decode_server(n, 0, 7) for n in range(20)], id="few"),
        pytest.param([decode_server(n, 0, 90 - 4 * n) for n in range(20)], id="fewer and fewer"),
        pytest.param([decode_server(n, 0, 90 * (n % 4 > 0)) for n in range(20)], id="emptied"),
        pytest.param([decode_server(n, 0, 90) for n in range(9)], id="for less than ten seconds"),
        pytest.param([decode_server(30 * n, 0, 90) for n in range(4)], id="in a few reports"),
    ],
)
def test_queues_that_are_short_or_get_shorter_are_clean(tmp_path: Path, lines: list[str]) -> None:
    result = check(log_of(tmp_path, *lines), (TransferBacklog(),))

    assert (result.findings, result.not_applicable) == ((), ())


def test_a_server_that_does_both_has_no_such_queue(tmp_path: Path) -> None:
    trace = log_of(tmp_path, *(sglang(n, 9, 9, 0.9) for n in range(20)))

    assert check(trace, (TransferBacklog(),)).not_applicable == ("STV017",)
