"""What readers of profiles have in common, whatever the format."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepscope.ingest.derive.collectives.inferred import ranks_listed
from stepscope.ingest.frames import Frame

_RANK_IN_NAME = re.compile(r"rank[-_. ]?(\d{1,6})", re.IGNORECASE)

_MERGED = re.compile(r"\[((?:TP|DP|PP|EP)\d{1,6}(?:-(?:TP|DP|PP|EP)\d{1,6}){0,3})\] ")


def rank_in_name(path: Path) -> int | None:
    """Tell the rank by the name of a file; None where that has none."""
    match = _RANK_IN_NAME.search(path.name)
    return int(match.group(1)) if match else None


def merged_ranks(pids: Iterable[str | None]) -> tuple[str, ...]:
    """The ranks whose profiles SGLang merged into a file: it puts them before each process's id.

    As `[TP00-DP00-PP00-EP00] 83`. The format: SGLang, `sglang/srt/utils/profile_merger.py`.
    """
    found = (_MERGED.match(pid) for pid in pids if pid)
    return tuple(sorted({match[1] for match in found if match}))


def about_merged(ranks: Sequence[str]) -> list[str]:
    """A sentence on a file into which several are merged."""
    if len(ranks) < 2:
        return []
    return [
        f"profiles of {len(ranks):,} ranks are merged into this file: steps and collectives are "
        "not told apart, open the folder of the ranks' own files for them"
    ]


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
