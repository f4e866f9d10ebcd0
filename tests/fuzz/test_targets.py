"""A short run of the fuzzer over all readers; `make fuzz` is the long one."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from stepscope.ingest.readers import readers
from stepscope.ingest.readers.rank_folder import RankFolderReader
from tests.fuzz.run import EVERY, fuzz
from tests.fuzz.targets import TARGETS

SEED = 1
NUM_RUNS = 300
MOST_S = 10


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


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_is_read(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    for number, seed in enumerate(target.seeds()):
        folder = tmp_path / str(number)
        folder.mkdir()
        tables, _ = target.reader.read(target.place(seed, folder), None)

        assert tables
