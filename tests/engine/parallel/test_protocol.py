"""The words between head and workers: what they are taken for, and what each end makes of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.engine.clock import VirtualClock
from stepscope.engine.parallel.links.command_wire import Wire
from stepscope.engine.parallel.links.link import Link
from stepscope.engine.parallel.links.rendezvous import Rendezvous
from stepscope.engine.parallel.protocol import (
    NUM_WORDS,
    Codebook,
    ProtocolError,
    as_signed,
    as_signed_words,
    as_word,
)
from stepscope.engine.parallel.ranks.worker_slots import WorkerSlots
from stepscope.ingest.errors import ConfigError
from tests.engine.rows import Rows
from tests.looped import looped

CODEBOOK = Codebook()
Note = tuple[int, str, str, int]


def ends(version: int, other_version: int | None = None) -> tuple[Wire, Wire, Rows, Rows]:
    """A head's and a worker's end of a wire, and what each records."""
    place, head, worker = Rendezvous(2), Rows(), Rows()
    clocks = VirtualClock(), VirtualClock()
    return (
        Wire(Link(place.end(0, clocks[0]), clocks[0], head.recorder), version),
        Wire(Link(place.end(1, clocks[1]), clocks[1], worker.recorder), other_version or version),
        head,
        worker,
    )


def together(send: Callable[[], Any], receive: Callable[[], Any]) -> Any:
    """What `receive` returned, while `send` ran beside it."""
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    received = receive()
    sender.join(180)
    return received


def test_each_word_of_the_codebook_is_its_command() -> None:
    names = sorted(CODEBOOK.words)

    assert [CODEBOOK.command(CODEBOOK.word(name)) for name in names] == names


def test_every_other_word_is_a_token_to_decode() -> None:
    words = (0, 1, 151_935, 0xFFFFFFDF, 0xFFFFFFEF)

    assert {CODEBOOK.command(word) for word in words} == {"decode"}


@given(st.integers(min_value=-(2**70), max_value=2**70))
def test_a_word_keeps_the_low_32_bits_through_its_signed_form(number: int) -> None:
    word = as_word(number)

    assert 0 <= word < NUM_WORDS
    assert -(2**31) <= as_signed(word) < 2**31
    assert as_word(as_signed(word)) == word
    assert as_signed_words([number]) == [as_signed(word)]


def test_a_mark_for_no_slot_in_64_bits_is_the_shutdown_word_in_32() -> None:
    assert CODEBOOK.command(as_word(2**64 - 1)) == "shutdown"


def test_a_codebook_is_configuration() -> None:
    changed = Codebook.parse("prefill=0xFFFFFF00, shutdown=0xFFFFFF0F")

    assert changed.command(0xFFFFFF00) == "prefill"
    assert changed.command(0xFFFFFFF0) == "decode"
    assert Codebook.from_dict(changed.as_dict()) == changed
    assert Codebook.parse("") == CODEBOOK


@looped(
    ("text", "why"),
    [
        ("prefill=0xFFFFFFFF", "same word"),
        ("prefill=0x1FFFFFFFF", "32 bits"),
        ("prefil=1", "no command"),
        ("prefill=many", "not a number"),
    ],
)
def test_a_codebook_that_makes_no_sense_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Codebook.parse(text)


def test_a_codebook_whose_commands_are_tokens_is_refused() -> None:
    with pytest.raises(ConfigError, match="a token or a slot too"):
        Codebook.parse("allocate=0x10").check(vocab_size=32, num_slots=4)


def test_under_v2_a_slot_goes_before_each_command() -> None:
    head, worker, sent, received = ends(2)

    def send() -> None:
        head.send_slot(3)
        head.send_command(17, 3)

    command = together(send, worker.receive_command)

    assert (command.name, command.word, command.slot) == ("decode", 17, 3)
    for rows in (sent, received):
        told = [(row["ordinal"], row["command"], row["slot"]) for row in rows.of("collectives")]
        assert told == [(0, "slot", 3), (1, "decode", 3)]


def test_v1_sends_no_slot_and_all_is_for_the_first() -> None:
    head, worker, sent, _ = ends(1)

    def send() -> None:
        head.send_slot(0)
        head.send_command(CODEBOOK.prefill, 0)

    command = together(send, worker.receive_command)

    assert (command.name, command.slot) == ("prefill", 0)
    assert [(row["command"], row["slot"]) for row in sent.of("collectives")] == [("prefill", None)]


def test_a_worker_of_v2_takes_the_command_of_a_v1_head_for_a_slot() -> None:
    head, worker, _, received = ends(1, 2)

    def send() -> None:
        head.send_command(CODEBOOK.prefill, 0)
        head.send_words([20], "length")

    command = together(send, worker.receive_command)

    assert (command.name, command.word, command.slot) == ("decode", 20, 0xFFFFFFF0)
    assert received.of("collectives")[0]["slot"] == as_signed(0xFFFFFFF0)


def test_what_a_command_needs_is_labelled_with_it() -> None:
    head, worker, _, received = ends(2)

    def send() -> None:
        head.send_slot(1)
        head.send_command(CODEBOOK.prefill, 1)
        head.send_words([5, 6, 7], "tokens")

    def receive() -> list[int]:
        worker.receive_command()
        return worker.receive_words(3, "tokens")

    assert together(send, receive) == [5, 6, 7]
    last = received.of("collectives")[-1]
    assert (last["command"], last["num_elements"], last["num_bytes"]) == ("prefill: tokens", 3, 12)


def test_worker_slots_are_claimed_up_front_lowest_first() -> None:
    notes: list[Note] = []
    slots = WorkerSlots(3, lambda *note: notes.append(note))

    assert notes == [(i, "claim", f"slot {i}", 0) for i in range(3)]
    assert [slots.own(i, "decode") for i in range(3)] == [0, 1, 2]


def test_allocating_a_slot_frees_its_occupant_and_claims_it_again() -> None:
    notes: list[Note] = []
    slots = WorkerSlots(3, lambda *note: notes.append(note))
    slots.allocate(1)

    assert notes[3:] == [(1, "release", "slot 1", 0), (1, "claim", "slot 1", 1)]
    assert slots.own(1, "decode") == 1


@pytest.mark.parametrize("slot", [3, 0xFFFFFFFF])
def test_a_slot_out_of_range_is_refused(slot: int) -> None:
    slots = WorkerSlots(3, lambda *_: None)

    with pytest.raises(ProtocolError, match="out of range"):
        slots.own(slot, "decode")


def test_a_slot_that_nobody_has_is_refused() -> None:
    slots = WorkerSlots(3, lambda *_: None, frozenset({"slots-not-allocated"}))

    assert slots.own(0, "decode") == 0
    with pytest.raises(ProtocolError, match="prefill for slot 2, which is not allocated"):
        slots.own(2, "prefill")


def test_slots_in_another_order_than_the_heads_go_unnoticed_only_with_the_fault() -> None:
    swapped = WorkerSlots(3, lambda *_: None, frozenset({"slot-order-differs"}))

    assert [swapped.own(i, "decode") for i in range(3)] == [2, 1, 0]
