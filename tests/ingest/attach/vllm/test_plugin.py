"""The plug-in of vLLM: nothing where it is not asked for, and the standard library alone."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from stepscope.ingest.attach.vllm.attaching import attach
from tests.conftest import ROOT

REGISTER = "import sys; from stepscope.ingest.attach.vllm.plugin import register; register(); "
ADAPTER = "stepscope.ingest.attach.vllm.attached"


def modules_after(code: str, env: dict[str, str]) -> set[str]:
    show = code + "print(' '.join(sys.modules))"
    path = {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", show], env=path | env, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_vllm_finds_the_plugin_by_its_entry_point() -> None:
    (found,) = entry_points(group="vllm.general_plugins", name="stepscope")

    assert found.value == "stepscope.ingest.attach.vllm.plugin:register"


def test_where_no_trace_is_asked_for_nothing_else_is_imported() -> None:
    before = modules_after("import sys, os; ", {})

    loaded = modules_after(REGISTER, {}) - before

    assert {name for name in loaded if name.startswith("stepscope")} == {
        "stepscope",
        "stepscope.ingest",
        "stepscope.ingest.attach",
        "stepscope.ingest.attach.vllm",
        "stepscope.ingest.attach.vllm.plugin",
    }


def test_what_records_in_the_engine_is_the_standard_library_alone(tmp_path: Path) -> None:
    loaded = modules_after(REGISTER, {"STEPSCOPE_TRACE": str(tmp_path)})

    assert ADAPTER in loaded
    assert loaded.isdisjoint({"polars", "numpy", "vllm", "torch", "msgspec"})


def test_an_engine_that_is_made_after_the_variable_was_taken_back_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("STEPSCOPE_TRACE", raising=False)

    assert attach(object()) is None
    assert caplog.text == ""
