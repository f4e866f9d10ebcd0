"""One manifest of those of several writers: the ranks of an engine, and the parts of a rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from stepscope.ingest.manifest import NOT_FOUND, Manifest, ReadReport


def merged(manifests: Iterable[Manifest]) -> Manifest:
    """Make one manifest of those of several writers: the first speaks for what they share."""
    ordered = sorted(manifests, key=lambda manifest: manifest.ranks)
    if len(ordered) == 1:
        return ordered[0]
    first = {f.name: getattr(ordered[0], f.name) for f in fields(Manifest)}
    first |= {
        "ranks": tuple(sorted({rank for each in ordered for rank in each.ranks})),
        "config": _merged_config([each.config for each in ordered]),
        "tables": _merged_tables(ordered),
        "closed": all(each.closed for each in ordered),
        "recovered": {rank: was for each in ordered for rank, was in (each.recovered or {}).items()}
        or None,
        "dropped": _summed(each.dropped for each in ordered),
        "report": _merged_reports([each.report for each in ordered if each.report]),
    }
    return Manifest(**first)


def _merged_config(configs: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The first one's; what was not found is so of any: each writer follows other functions."""
    told = [config[NOT_FOUND] for config in configs if isinstance(config.get(NOT_FOUND), list)]
    if not told:
        return configs[0]
    names = dict.fromkeys(str(name) for names in told for name in names)
    return {**configs[0], NOT_FOUND: list(names)}


def _merged_tables(manifests: list[Manifest]) -> dict[str, str]:
    worst = ("partial", "ordered", "inferred", "complete")
    said: dict[str, set[str]] = {}
    for manifest in manifests:
        for table, state in manifest.tables.items():
            said.setdefault(table, set()).add(state)
    return {
        table: next((s for s in worst if s in states), "partial") for table, states in said.items()
    }


def _merged_reports(reports: list[ReadReport]) -> ReadReport | None:
    if not reports:
        return None
    return ReadReport(
        _summed(report.read for report in reports),
        _summed(report.skipped for report in reports),
        _summed(report.repaired for report in reports),
        _summed(report.inferred for report in reports),
        tuple(dict.fromkeys(note for report in reports for note in report.notes)),
    )


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            total[name] = total.get(name, 0) + number
    return total
