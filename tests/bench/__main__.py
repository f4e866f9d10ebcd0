"""`make bench`: what recording, drawing and checking cost on this machine.

Prints a table for each benchmark; `--json FILE` writes the same numbers. Never a test: it has no
opinion about the numbers.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path
from typing import Any

from stepscope.app.text_table import print_table

BENCHMARKS = (
    "bench_recorder",
    "bench_hot_loop",
    "bench_record_share",
    "bench_engine_rows",
    "bench_mooncake",
    "bench_read",
    "bench_timeline",
    "bench_check",
    "bench_rules",
    "bench_blame",
    "bench_web",
    "bench_live",
    "bench_report",
    "bench_debug",
    "bench_tui",
)


def main() -> None:
    """Run the named benchmarks, or all of them."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--json", type=Path, help="write the numbers there too")
    arguments = parser.parse_args()
    results: dict[str, list[dict[str, Any]]] = {}
    for name in arguments.names or BENCHMARKS:
        module = importlib.import_module(f"tests.bench.{name}")
        print(f"\n{name}: {(module.__doc__ or '').splitlines()[0]}")
        results[name] = rows = module.measure()
        print_table(list(rows[0]), [list(row.values()) for row in rows])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
