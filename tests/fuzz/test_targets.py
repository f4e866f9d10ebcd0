"""A short run of the fuzzer over all readers; `make fuzz` is the long one."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from random import Random

import pytest

from stepscope.ingest.readers import readers
from stepscope.ingest.readers.rank_folder import RankFolderReader
from tests.fuzz.run import EVERY, fuzz
from tests.fuzz.targets import TARGETS
from tests.looped import looped
from tests.tiers import slow

SEED = 1
NUM_RUNS = 800
MOST_S = 10
NUM_CHANGED = 12


def changed(seed: bytes, random: Random) -> bytes:
    """Return a seed of which some bytes are others, are gone, or are there twice."""
    content = bytearray(seed)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(content) + 1)
        end = at + random.randint(1, 1 << random.randint(0, 8))
        new = random.choice(
            (b"", random.randbytes(random.randint(1, 8)), bytes(2 * content[at:end]))
        )
        content[at:end] = new
    return bytes(content)


@looped("name", TARGETS)
def test_no_reader_raises_what_is_not_ours_on_a_seed_that_was_changed(
    name: str, tmp_path: Path
) -> None:
    target, random = TARGETS[name], Random(SEED)
    seeds = list(target.seeds())
    for number in range(NUM_CHANGED):
        target(changed(seeds[number % len(seeds)], random), tmp_path)


@slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
def test_no_reader_raises_what_is_not_ours_or_hangs_or_swells(tmp_path: Path) -> None:
    outcome = fuzz(
        EVERY, tmp_path, f"-runs={NUM_RUNS}", f"-seed={SEED}", f"-max_total_time={MOST_S}"
    )

    assert not outcome.failed, outcome.cause
    assert re.search(r"^Done \d{2,} runs", outcome.said, re.MULTILINE)


def test_every_reader_has_a_target() -> None:
    # A folder of ranks is read file by file, as the one that has a target reads them.
    missing = {type(reader) for reader in readers()} - {RankFolderReader}

    assert missing <= {type(target.reader) for target in TARGETS.values()}


@slow
@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_is_read(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    for number, seed in enumerate(target.seeds()):
        folder = tmp_path / str(number)
        folder.mkdir()
        tables, _ = target.reader.read(target.place(seed, folder), None)

        assert tables
