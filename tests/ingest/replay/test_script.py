from __future__ import annotations

from pathlib import Path

from stepscope.ingest.replay.script import (
    Asked,
    Call,
    Script,
    StepCosts,
    read_script,
    write_script,
)  # fmt: skip


def test_a_script_is_read_as_it_was_written(tmp_path: Path) -> None:
    script = Script(
        "vllm",
        {"max_num_seqs": 4},
        (Asked("a", 5, 6, 7, 1, True, (1, 2), 6, ((3, 1),)),),
        (
            Call("add", 1, request="a"),
            Call("schedule", 2, 1, batch=(("a", 5),)),
            Call("update", 3, 1, tokens={"a": 1}, ends={"a": "stop"}, proposed={"a": 2}),
        ),
        3,
        StepCosts(1.0, 2.0, 3.0, 4.0, 5.0),
    )

    write_script(script, tmp_path / "script")

    assert read_script(tmp_path / "script") == script
