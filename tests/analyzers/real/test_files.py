"""Which rules the files of other people's programs say anything to, and which they cannot.

What a rule says of a file is checked against figures counted by hand, without readers and without
Polars: test_swimlanes.py, test_profiles.py, test_logs.py. The others are in LACKS.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import check
from tests.analyzers.conftest import Real
from tests.analyzers.real import test_logs, test_profiles, test_swimlanes
from tests.analyzers.real.files import FILES, LACKS, QUICK
from tests.tiers import sampled

TESTED = (test_swimlanes, test_profiles, test_logs)


def test_every_rule_is_tried_on_a_real_file_or_it_is_said_what_these_lack() -> None:
    tried = {code for module in TESTED for code in module.TRIED}

    assert not tried & set(LACKS)
    assert tried | set(LACKS) == {rule.code for rule in RULES}


def test_every_real_file_is_looked_at(shared_data: Path) -> None:
    folders = ("swimlane", "kineto", "logs", "requests")
    there = {
        f"{folder}/{each.name}" for folder in folders for each in shared_data.glob(f"{folder}/*")
    }

    assert there == set(FILES)


@pytest.mark.parametrize("file", sampled(FILES, quick=QUICK))
def test_no_real_file_has_what_the_rules_need_that_cannot_judge_it_and_they_say_so(
    real: Real, file: str
) -> None:
    trace = real(file)
    rules = [rule for rule in RULES if rule.code in LACKS]

    assert [code for code, lack in LACKS.items() if lack.has_it(trace)] == []
    assert check(trace, rules).counts == {}
