"""What a kept result is known by: what was read, by which code, within which limits.

The whole content of small files is in the key, of large ones their size, time of change and a
sample of their blocks: see docs/decisions/0006-what-a-cached-result-is-known-by.md.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import polars as pl

from stepscope.ingest.limits import Limits

WHOLE_BYTES = 16 << 20
"""Up to this size, all together, files are digested whole."""
BLOCK_BYTES = 16 << 10
NUM_BLOCKS = 64
_CODE = Path(__file__).parent.parent
_SUFFIXES = (".py", ".c", ".so")


def key_of(path: Path, sources: Sequence[Path], limits: Limits) -> str | None:
    """Digest the name of `path`, what is in its sources, the limits and the code that reads.

    None where a source cannot be read, or the code is not to be seen; a source that is not there
    is part of the key.
    """
    try:
        return _digest(path, sources, limits)
    except OSError:
        return None


def _digest(path: Path, sources: Sequence[Path], limits: Limits) -> str | None:
    if not (version := code_version()):
        return None
    digest = hashlib.blake2b(version.encode(), digest_size=20)
    digest.update(repr((path.name, limits)).encode())
    whole = sum(map(_size, sources)) <= WHOLE_BYTES
    for file in sources:
        name = repr((file.name, _size(file))).encode("utf-8", "surrogateescape")
        for part in (name, *(_whole(file) if whole else _sample(file, len(sources)))):
            digest.update(len(part).to_bytes(8))
            digest.update(part)
    return digest.hexdigest()


@cache
def code_version(folder: Path | None = None) -> str:
    """Digest the code in a folder, by default all that reads files.

    None of it can change and what it gave before stand. Empty where it is installed without its
    sources.
    """
    code = str(folder or _CODE)
    files = sorted(
        os.path.join(inside, name)  # a thousand of them as `Path` take a tenth of a second more
        for inside, _, names in os.walk(code)
        for name in names
        if name.endswith(_SUFFIXES)
    )
    digest = hashlib.blake2b(pl.__version__.encode())
    for file in files:
        with open(file, "rb") as opened:
            digest.update(file.removeprefix(code).encode() + b"\0" + opened.read())
    return digest.hexdigest() if any(file.endswith(".py") for file in files) else ""


def _size(file: Path) -> int:
    """The size of a file; -1 of what is none, or not there."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1


def _whole(file: Path) -> Iterator[bytes]:
    if _size(file) >= 0:
        yield file.read_bytes()


def _sample(file: Path, num_files: int) -> Iterator[bytes]:
    if (size := _size(file)) < 0:
        return
    yield str(file.stat().st_mtime_ns).encode()
    with file.open("rb") as opened:
        for at in _places(size, max(4, NUM_BLOCKS // num_files)):
            opened.seek(at)
            yield opened.read(BLOCK_BYTES)


def _places(size: int, num: int) -> Iterable[int]:
    """Where `num` blocks begin, the first and the last of a file among them."""
    last = max(size - BLOCK_BYTES, 0)
    return sorted({last * block // (num - 1) for block in range(num)})
