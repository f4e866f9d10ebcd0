"""What the command prints of every sample and real file, to be held against what it printed before.

`python -m tests.goldens take FOLDER` writes it down, as a file per command below a folder per
trace; `python -m tests.goldens compare A B` prints where two such folders differ, and exits 1.
Files of other people's programs are left out where ../shared is absent.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import combinations, islice
from pathlib import Path

from stepscope.app.cli import main as stepscope
from stepscope.ingest.schema import TABLES
from tests.conftest import ROOT

SAMPLES = Path("sample_traces")
REAL = (Path("../shared/data"), Path("../shared/foreign"))
COMMANDS = {
    "check.txt": ("check", "--all"),
    "check.json": ("check", "--all", "--format", "json"),
    "check.sarif": ("check", "--all", "--format", "sarif"),
    "info.txt": ("info",),
    "info.json": ("info", "--format", "json"),
    "blame.txt": ("blame",),
    "blame.json": ("blame", "--limit", "0", "--format", "json"),
}
DIFFS = {"diff.txt": ("diff",), "diff.json": ("diff", "--format", "json")}
MOST_LINES = 40
"""So much is shown of each output that differs."""


def samples() -> list[Path]:
    """The project's own traces."""
    others = (".py", ".md")
    return sorted(
        path
        for path in SAMPLES.iterdir()
        if path.suffix not in others and path.name != "__pycache__"
    )


def traces() -> list[Path]:
    """All that is read: the samples, and each file and folder of other people's programs."""
    return samples() + sorted(path for folder in REAL for path in folder.rglob("*"))


def outputs() -> Iterator[tuple[Path, str]]:
    """By the name of a file to be written, what one command printed."""
    for path in traces():
        name = Path(str(path).removeprefix("../"))
        for file, words in COMMANDS.items():
            yield name / file, said(*words, str(path))
        for table in TABLES:
            yield name / f"{table.name}.rows", rows(path, table.name)
    for one, other in combinations(samples(), 2):
        for file, words in DIFFS.items():
            yield (
                Path("diff", f"{one.name}--{other.name}", file),
                said(*words, str(one), str(other)),
            )


def said(*words: str) -> str:
    """What `stepscope WORDS` prints, its exit code and its complaints."""
    out, complaints = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaints):
        code = stepscope(words)
    text = out.getvalue()
    if text.startswith(("{", "[")):
        text = json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
    return f"exit {code}\n{complaints.getvalue()}{text}"


def rows(path: Path, table: str) -> str:
    """The rows of one table as `stepscope sql` gives them, sorted, one on a line."""
    text = said("sql", "--format", "json", str(path), f"from {table}")
    end, _, answer = text.partition("\n[")
    if not answer:
        return text
    lines = sorted(json.dumps(row, ensure_ascii=False) for row in json.loads("[" + answer))
    return "\n".join([end, *lines, ""])


def take(folder: Path) -> None:
    """Write every output below `folder`; each file is read once, and with no cache but our own."""
    with tempfile.TemporaryDirectory() as cache, contextlib.chdir(ROOT):
        os.environ |= {"STEPSCOPE_CACHE": cache, "COLUMNS": "100"}
        for name, text in outputs():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(without_place(text))


def without_place(text: str) -> str:
    """The text wherever the project lies, and what is beside it."""
    return text.replace(str(ROOT), "").replace(str(ROOT.parent), "..")


def differences(before: Path, after: Path) -> Iterator[list[str]]:
    """Of each output that differs, the first lines of a unified diff."""
    for name in sorted({*_names(before), *_names(after)}):
        old, new = _lines(before / name), _lines(after / name)
        if old != new:
            found = difflib.unified_diff(old, new, f"{before}/{name}", f"{after}/{name}", n=1)
            yield [line.rstrip("\n") for line in islice(found, MOST_LINES)]


def _names(folder: Path) -> Iterable[Path]:
    return (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def main(words: list[str]) -> int:
    """Take, or compare."""
    match words:
        case ["take", folder]:
            take(Path(folder).resolve())
            return 0
        case ["compare", before, after]:
            found = list(differences(Path(before), Path(after)))
            for lines in found:
                sys.stdout.write("\n".join([*lines, ""]))
            sys.stdout.write(f"{len(found)} outputs differ\n")
            return 1 if found else 0
    sys.stderr.write(str(__doc__))
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
