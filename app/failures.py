"""What a command ended in, as a line and an exit code."""

from __future__ import annotations

from stepscope.ingest.errors import StepscopeError, TraceError


def told(error: Exception) -> tuple[str, int]:
    """Return the line and the exit code for whatever a command ended in."""
    if isinstance(error, StepscopeError):
        return str(error), error.exit_code
    if isinstance(error, OSError):
        return f"{error.filename or 'system'}: {error.strerror or error}", 2
    if _is_damage(error):
        return f"the trace's files are damaged: {error}", TraceError.exit_code
    bug = f"{type(error).__name__}: {error}".partition("\n")[0]
    return f"a bug in stepscope: {bug}; run again with STEPSCOPE_DEBUG=1", 70


def _is_damage(error: Exception) -> bool:
    """Tell whether Polars met a Parquet file whose footer is whole and whose pages are not.

    Only reading a page shows it, which happens wherever a table is collected.
    """
    return type(error).__name__ == "ComputeError" and str(error).startswith("parquet:")
