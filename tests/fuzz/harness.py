"""One target under libFuzzer, in a process of its own: `harness.py TARGET [libFuzzer's flags]`.

It ends at the first input that raises what is not ours, takes too long or too much memory.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory


def main() -> None:
    """Fuzz the target that is named first, or all of them at once."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    import atheris  # noqa: PLC0415 - behind the setting above

    with atheris.instrument_imports(include=["stepscope.ingest"]):
        from tests.fuzz.targets import TARGETS, every_target  # noqa: PLC0415 - to be instrumented

    target = TARGETS.get(sys.argv.pop(1), every_target)
    with TemporaryDirectory() as folder:
        atheris.Setup(sys.argv, lambda content: target(content, Path(folder)))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
