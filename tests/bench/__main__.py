"""`make bench`: what recording, drawing and checking cost on this machine.

Prints a table for each benchmark; `--json FILE` writes the same numbers. Never a test: it has no
opinion about the numbers.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from stepscope.app.text_table import print_table
from tests.bench.bench_timeline.lane_rows import KINDS

BENCHMARKS = (
    "bench_recorder",
    "bench_hot_loop",
    "bench_record_share",
    "bench_engine_rows",
    "bench_mooncake",
    "bench_read",
    "bench_timeline",
    "bench_timeline.lanes",
    "bench_beside_perfetto",
    "bench_check",
    "bench_fleet",
    "bench_rules",
    "bench_blame",
    "bench_web",
    "bench_live",
    "bench_report",
    "bench_debug",
    "bench_tui",
    "bench_tui.frames",
)


def main() -> None:
    """Run the named benchmarks, or all of them."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--long", action="store_true", help="what takes minutes, too: 1e8 spans")
    parser.add_argument(
        "--lane", action="append", help=f"of bench_timeline.lanes only this: {', '.join(KINDS)}"
    )
    parser.add_argument("--json", type=Path, help="write the numbers there too")
    arguments = parser.parse_args()
    results: dict[str, list[dict[str, Any]]] = {}
    for name in arguments.names or BENCHMARKS:
        module = importlib.import_module(f"tests.bench.{name}")
        print(f"\n{name}: {(module.__doc__ or '').splitlines()[0]}")
        results[name] = rows = _measured(module, long=arguments.long, lanes=arguments.lane)
        print_table(list(rows[0]), [list(row.values()) for row in rows])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


def _measured(module: ModuleType, **options: Any) -> list[dict[str, Any]]:
    """Measure with those options that a benchmark takes and that are given."""
    takes = inspect.signature(module.measure).parameters
    given = {name: value for name, value in options.items() if value and name in takes}
    rows: list[dict[str, Any]] = module.measure(**given)
    return rows


if __name__ == "__main__":
    main()
