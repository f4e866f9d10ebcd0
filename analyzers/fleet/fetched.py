"""A file that a worker reads: where it lies, or a copy of it for as long as it is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from stepscope.analyzers.fleet.messages import Place
from stepscope.ingest.errors import MissingExtra, TraceError

EXTRA = "pip install 'stepscope[distributed]'"


@contextmanager
def at_hand(place: Place) -> Iterator[Path]:
    """Give the path of a file; what is elsewhere is copied, and the copy taken away again.

    Raises `TraceError` where it cannot be fetched.
    """
    if not place.is_remote:
        yield Path(os.fsdecode(place.path))
        return
    url = place.path.decode()
    files, inside = store_of(url)
    with TemporaryDirectory(prefix="stepscope-fleet-") as folder:
        name = inside.rstrip("/").rpartition("/")[2]
        copy = Path(folder, "trace" if name in ("", ".", "..") else name)
        try:
            files.get(inside, str(copy), recursive=files.isdir(inside))
        except Exception as error:  # each store has exceptions of its own
            said = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise TraceError(f"it cannot be fetched: {said}", where=url) from None
        yield copy


def store_of(url: str) -> tuple[Any, str]:
    """The store of a URL, as fsspec opens it, and the path within.

    Raises `MissingExtra` without fsspec or what it needs for the store, and `TraceError` where
    there is no such store.
    """
    try:
        opening: Any = import_module(
            "fsspec.core"
        )  # it takes its time, and few fleets are elsewhere
    except ModuleNotFoundError:
        raise MissingExtra("reading from a URL needs an extra", where=url, todo=EXTRA) from None
    try:
        files, inside = opening.url_to_fs(url)
    except ImportError as error:
        what = f"fsspec needs another package: {error}".partition("\n")[0]
        raise MissingExtra(what, where=url, todo="install it beside stepscope") from None
    except Exception as error:  # a wrong URL, or a store that refuses
        raise TraceError(f"it cannot be opened: {error}".partition("\n")[0], where=url) from None
    return files, str(inside)
