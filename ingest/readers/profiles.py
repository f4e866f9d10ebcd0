"""What readers of profiles have in common, whatever the format."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepscope.ingest.derive.collectives.inferred import ranks_listed
from stepscope.ingest.frames import Frame

_RANK_IN_NAME = re.compile(r"rank[-_. ]?(\d{1,6})", re.IGNORECASE)


def rank_in_name(path: Path) -> int | None:
    """Tell the rank by the name of a file; None where that has none."""
    match = _RANK_IN_NAME.search(path.name)
    return int(match.group(1)) if match else None


def groups_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Give the ranks of each process group, by its name, as torch.profiler lists them."""
    info = metadata.get("distributedInfo")
    listed = info.get("pg_config") if isinstance(info, dict) else None
    groups = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    known = {str(each.get("pg_name")): ranks_listed(each.get("ranks")) for each in groups}
    return {name: ranks for name, ranks in known.items() if ranks}


def num_inferred(tables: Mapping[str, Frame]) -> dict[str, int]:
    """Count the rows that were inferred, by table and what they were inferred from."""
    counts: Counter[str] = Counter()
    for name in ("steps", "collectives"):
        if name in tables:
            sources = tables[name].lazy().collect()["inferred"].value_counts(sort=True)
            counts.update({f"{name} from {source}": num for source, num in sources.iter_rows()})
    return dict(counts)
