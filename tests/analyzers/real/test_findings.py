"""Every finding on a real file is expected, and counted once more from the raw file."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import by_code
from stepscope.analyzers.findings.finding import Severity
from tests.analyzers.real.files import FILES, QUICK
from tests.analyzers.real.findings import COUNTED, FOUND, counts, row, said
from tests.tiers import sampled, slow


@slow
@pytest.mark.parametrize("name", sampled(FILES, quick=QUICK))
def test_a_real_file_has_the_findings_that_were_counted_and_no_others(
    shared_data: Path, name: str
) -> None:
    result = said(shared_data / name)

    assert counts(result) == FOUND[name]
    assert f"{len(result.counts)} of " in row(name, result)


def test_every_finding_on_a_real_file_is_counted_again_from_raw_data() -> None:
    found = {(name.partition("/")[0], code) for name, codes in FOUND.items() for code in codes}
    loud = {(kind, code) for kind, code in found if by_code(code).severity is not Severity.INFO}

    assert loud <= set(COUNTED)
    assert set(COUNTED) <= found
    assert set(FOUND) == set(FILES)
