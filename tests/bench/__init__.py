"""What benchmarks share."""

from __future__ import annotations

from pathlib import Path


def peak_gb() -> float:
    """The most memory that this process has had so far, in GB.

    The `ru_maxrss` of `getrusage` would do, were it not at first that of whoever started it.
    """
    told = Path("/proc/self/status").read_text().partition("VmHWM:")[2]
    return int(told.split(maxsplit=1)[0]) * 1024 / 1e9
