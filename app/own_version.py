"""Which version of stepscope this is."""

from __future__ import annotations

NOT_INSTALLED = "unknown (not installed)"
"""What is said where its files are run as they lie: only an installation knows its version."""


def own_version() -> str:
    """The version that is installed, or that none is."""
    return installed_version() or NOT_INSTALLED


def installed_version() -> str | None:
    """The version that is installed, None where none is."""
    # importlib.metadata costs as much as the rest of the start-up, so only who asks pays it.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - as above

    try:
        return version("stepscope")
    except PackageNotFoundError:
        return None
