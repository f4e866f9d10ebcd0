from __future__ import annotations

import random
from itertools import chain, repeat
from typing import Any

import polars as pl

from stepscope.analyzers.replay.tokens import runs_of
from stepscope.ingest.attach.sglang.alike import Alike

NAMES = ("event", "request", "prompt_len", "num_generated", "alike", "num_alike")
TYPES = (pl.String, pl.String, pl.Int64, pl.Int64, pl.String, pl.Int64)
SCHEMA = dict(zip(NAMES, TYPES, strict=True))


def common(one: list[int], other: list[int]) -> int:
    """How many first tokens are the same."""
    number = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        number += 1
    return number


def told(sequences: dict[str, list[int]], prompts: dict[str, int]) -> pl.DataFrame:
    """What an adapter tells of requests that come one after another, each ended by the next."""
    alike, rows = Alike(), list[tuple[Any, ...]]()
    for name, tokens in sequences.items():
        prompt = prompts[name]
        rows.append(("arrive", name, prompt, 0, *alike.of(name, tokens[:prompt])))
        rows.append(("finish", name, None, len(tokens) - prompt, *alike.of(name, tokens)))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def test_any_two_requests_have_as_many_first_tokens_in_common_as_they_had() -> None:
    draw = random.Random(7)
    sequences: dict[str, list[int]] = {}
    for number in range(40):
        before = list(sequences.values())
        stem = draw.choice(before)[: draw.randrange(30)] if before and draw.random() < 0.8 else []
        own = [draw.randrange(3) for _ in range(draw.randrange(1, 20))]
        sequences[f"r{number}"] = [*stem, *own]
    prompts = {name: draw.randrange(1, len(each) + 1) for name, each in sequences.items()}

    runs = runs_of(told(sequences, prompts))

    made = {
        name: list(chain.from_iterable(repeat(token, times) for token, times in each))
        for name, each in runs.items()
    }
    assert {name: len(each) for name, each in made.items()} == {
        name: len(each) for name, each in sequences.items()
    }
    for one, tokens in sequences.items():
        for other, others in sequences.items():
            assert common(made[one], made[other]) == common(tokens, others)


def test_where_nobody_is_told_to_be_like_another_there_are_no_tokens() -> None:
    assert runs_of(told({"a": [1, 2], "b": [3, 4]}, {"a": 1, "b": 1})) == {}


def test_who_came_first_is_forgotten_first() -> None:
    alike = Alike(most=6)
    alike.of("a", [1, 2, 3])
    alike.of("b", [7, 8, 9])

    forgets = alike.of("c", [4, 5, 6])

    assert forgets == (None, None)
    assert alike.of("d", [1, 2, 3]) == (None, None)
    assert alike.of("e", [4, 5]) == ("c", 2)
