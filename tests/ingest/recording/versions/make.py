"""Make the recordings of this folder: `python tests/ingest/recording/versions/make.py [1]`.

For format 1, each commit that changed what is on disk is unpacked, and `record.py` is run with its
code by this interpreter. Otherwise the working tree records the format that it writes.
"""

from __future__ import annotations

import io
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[3]
FORMAT_1 = (
    "3b1cb232", "2dd8c5e0", "c561e543", "5d490bed", "1dc1b2c5", "1cd2a92e", "269e1554", "3f0fbf39",
    "036f83c1", "321a371f", "82ab55a9", "3db89f87", "e02057de", "90ec7453", "99748468", "a0bd9ace",
)  # fmt: skip
"""Commits from 21 to 29 Nov 2026 that changed what format 1 holds, and the last that wrote it."""


def main(is_format_1: bool) -> None:
    """Make the archive of format 1, or of the format that the working tree writes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if is_format_1:
            for commit in FORMAT_1:
                record(unpack(commit, folder / "code" / commit), folder / "made" / commit)
            file = FOLDER / "format-1.tar.xz"
        else:
            from stepscope.ingest.schema import FORMAT_VERSION  # noqa: PLC0415 - of the working tree

            record(ROOT / "src", folder / "made" / "here")
            file = FOLDER / f"format-{FORMAT_VERSION}.tar.xz"
        file.write_bytes(packed(folder / "made"))
        sys.stdout.write(f"{file.name}: {file.stat().st_size} bytes\n")


def record(source: Path, folder: Path) -> None:
    """Record with the code of a source folder: killed, closed, and a cached profile."""
    has_recorder = (source / "stepscope/ingest/recorder.py").exists()
    for how in ("kill", "close", "cache") if has_recorder else ("close",):
        result = subprocess.run(
            [sys.executable, FOLDER / "record.py", folder / how, how],
            env={**os.environ, "PYTHONPATH": str(source), "POLARS_MAX_THREADS": "1"},
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, timeout=180,
        )  # fmt: skip
        if result.returncode not in ((-9,) if how == "kill" else (0,)):
            raise SystemExit(f"{folder.name} {how}: {result.stderr.decode()}")


def unpack(commit: str, folder: Path) -> Path:
    """Unpack the package of a commit; until 22 Nov it had no folder of its name."""
    package = folder / "src" / "stepscope"
    package.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit, "ingest"))) as archive:
        archive.extractall(folder, filter="data")
    (package / "ingest").symlink_to("../../ingest")
    (package / "__init__.py").touch()
    return folder / "src"


def git(*arguments: str) -> bytes:
    """Return what git prints."""
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True).stdout


def packed(folder: Path) -> bytes:
    """Pack a folder so that the same files give the same bytes."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in sorted(folder.rglob("*")):
            member = archive.gettarinfo(file, str(file.relative_to(folder)))
            member.uid = member.gid = member.mtime = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if file.is_dir() else 0o644
            archive.addfile(member, file.open("rb") if file.is_file() else None)
    return lzma.compress(raw.getvalue(), preset=9 | lzma.PRESET_EXTREME)


if __name__ == "__main__":
    main(sys.argv[1:] == ["1"])
