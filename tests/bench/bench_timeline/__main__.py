"""One process of `bench_timeline`: prints what it measured of a trace as JSON."""

from __future__ import annotations

import json
import sys

from tests.bench.bench_timeline import measure_one

print(json.dumps(measure_one(sys.argv[1])))
