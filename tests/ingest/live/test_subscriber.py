"""Which addresses are listened to: those of this machine, unless others are asked for."""

from __future__ import annotations

import pytest

from stepscope.ingest.errors import ConfigError
from stepscope.ingest.live.subscriber import check_addresses
from tests.looped import looped


@looped(
    ("address", "why"),
    [
        ("tcp://10.0.0.1:5557", "this is another machine; only this machine is listened to"),
        ("tcp://example.org:5557", "this is another machine"),
        ("tcp://*:5557", "this is another machine"),
        ("tcp://127.0.0.1", "it is not an address to listen at"),
        ("tcp://127.0.0.1:0", "there is no port 0"),
        ("tcp://127.0.0.1:99999", "there is no port 99999"),
        ("tcp://127.0.0.1:٣", "it is not an address to listen at"),
        ("http://127.0.0.1:80", "it is not an address to listen at"),
        ("5557", "it is not an address to listen at"),
        ("", "it is not an address to listen at"),
    ],
)
def test_what_is_no_address_of_this_machine_is_refused(address: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_addresses([address])


@looped(
    "address", ["tcp://127.0.0.1:5557", "tcp://localhost:1", "tcp://[::1]:65535", "ipc://engine"]
)
def test_addresses_of_this_machine_are_listened_to(address: str) -> None:
    check_addresses([address])


def test_another_machine_is_listened_to_where_it_is_asked_for() -> None:
    check_addresses(["tcp://10.0.0.1:5557"], remote=True)
