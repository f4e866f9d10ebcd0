"""What a checker is told to overlook has its reason beside it."""

from __future__ import annotations

import io
import re
import tokenize

from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow
from tests.words import sources

SUPPRESSES = re.compile(r"#\s*(noqa|type:\s*ignore)\b")
REASONED = re.compile(r"# (noqa: [A-Z0-9, ]+ - (?=\S)|type: ignore\[[a-z, -]+\]  (?=# \S))")


def without_reason(text: str) -> list[int]:
    """The lines of comments that suppress a check and do not say why."""
    if not SUPPRESSES.search(text):
        return []
    comments = (
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    )
    return [
        comment.start[0]
        for comment in comments
        if len(SUPPRESSES.findall(comment.string)) != len(REASONED.findall(comment.string))
    ]


@slow
def test_every_check_that_is_suppressed_says_why() -> None:
    found = [
        f"{path}:{line}"
        for path in sources()
        if path.endswith((".py", ".pyi"))
        for line in without_reason((ROOT / path).read_text("utf-8"))
    ]

    assert found == []


@looped("comment", [
    "# noqa", "# noqa: S101", "# type: ignore", "# type: ignore[misc]", "#noqa: E731 - tight",
    "# type: ignore[misc] the types are wrong", "# noqa: S101 -",
])  # fmt: skip
def test_a_suppression_without_a_reason_is_found(comment: str) -> None:
    assert without_reason(f"one = 1\ntwo = 2  {comment}\n") == [2]


@looped("comment", [
    "# noqa: S101 - our own", "# noqa: S101, S102 - our own",
    "# type: ignore[misc]  # noqa: S101 - the same of both", "# type: ignore[misc]  # numbers",
    "# a comment", '"# noqa"',
])  # fmt: skip
def test_one_with_its_reason_is_fine(comment: str) -> None:
    assert without_reason(f"one = {comment if comment[0] == chr(34) else '1  ' + comment}\n") == []
