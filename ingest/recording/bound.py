"""Which columns of a table a function records: what is wrong with them is said where it is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stepscope.ingest.columns import Column, Table
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import BY_NAME


def bound(table: str, names: Sequence[str]) -> tuple[Table, list[Column]]:
    """Give a table and columns of it, all required ones among them; raises `ConfigError`."""
    if (known := BY_NAME.get(table)) is None:
        raise ConfigError(f"there is no table {table!r}", where=table)
    columns = {column.name: column for column in known.given}
    if unknown := [name for name in names if name not in columns]:
        raise ConfigError(f"there is no column {unknown[0]!r}", where=table)
    if twice := [name for name, number in Counter(names).items() if number > 1]:
        raise ConfigError(f"{twice[0]!r} is named twice", where=table)
    if missing := set(known.required) - set(names):
        raise ConfigError(f"{', '.join(sorted(missing))} must be recorded", where=table)
    return known, [columns[name] for name in names]
