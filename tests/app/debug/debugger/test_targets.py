"""Where to go is read in every form in which it is written, and in no other."""

from __future__ import annotations

import pytest

from stepscope.app.debug.debugger.targets import Target, target_of
from stepscope.ingest.errors import ConfigError
from tests.looped import looped


@looped(
    ("text", "target"),
    [
        ("86", Target(step=86)),
        ("8.66s", Target(after_ns=8_660_000_000)),
        ("12 ms", Target(after_ns=12_000_000)),
        ("3us", Target(after_ns=3_000)),
        ("40%", Target(share=0.4)),
        ("250%", Target(share=1.0)),
        ("@storm", Target(flag="storm")),
        ("#12", Target(seq=12)),
        ("end", Target(share=1.0)),
    ],
)
def test_a_place_is_read(text: str, target: Target) -> None:
    assert target_of(text) == target


@looped("text", ["", "here", "8.66", "8 days", "-40%", "#-1", "1e9"])
def test_what_is_no_place_is_told_with_the_forms_that_are(text: str) -> None:
    with pytest.raises(ConfigError, match="is no place; write it like 86, "):
        target_of(text)
