"""Where what was made of a whole trace is kept beside it, in the user's cache."""

from __future__ import annotations

import hashlib

from stepscope.ingest.limits import DEFAULTS
from stepscope.ingest.storage.cache import Cache, users_cache
from stepscope.ingest.storage.cache_key import key_of
from stepscope.ingest.trace import Trace


def place_beside(trace: Trace, code: str, which: str, worth_bytes: int) -> tuple[Cache, str] | None:
    """The cache and the name of the entry of what `code`, a digest, makes of a trace.

    `which` tells several of one trace apart. None where none is to be made: of a trace that is not
    as its files are, that may grow, or that is smaller than what is worth it.
    """
    cache = users_cache() if code and trace.may_be_cached else None
    if cache is None or cache.unusable():
        return None
    key = trace.cached_as or _key_of_directory(trace, worth_bytes)
    if key is None:
        return None
    digest = hashlib.blake2b(f"{key} {code} {which}".encode(), digest_size=20)
    return cache, f"{digest.hexdigest()}.index"


def _key_of_directory(trace: Trace, worth_bytes: int) -> str | None:
    """What a closed `.trace` directory of some size is known by."""
    path = trace.path
    if not (trace.manifest.closed and path and path.is_dir()):
        return None
    files = sorted(file for file in path.rglob("*") if file.is_file())
    try:
        num_bytes = sum(file.stat().st_size for file in files)
    except FileNotFoundError:  # what another process still writes there is no such file yet
        return None
    return key_of(path, files, DEFAULTS) if num_bytes >= worth_bytes else None
