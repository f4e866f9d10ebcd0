"""Engine steps out of a profiler's annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import polars as pl

from stepscope.ingest.derive.axis import numbered
from stepscope.ingest.derive.launches import FOREVER, GPU_ANNOTATION
from stepscope.ingest.derive.step_tags import (
    MARKERS,
    StepTag,
    is_unread,
    joined,
    looks_like_tag,
    parse_tag,
)
from stepscope.ingest.frames import polars_schema
from stepscope.ingest.schema import STEPS

NOT_TAGS = ("python_function", "kernel")
UNREAD = "annotations that look like tags of steps and are not understood"
_SHOWN_CHARS = 80


@dataclass(slots=True)
class _Step:
    """A tag, what it says, and when it was open; inner tags are merged into it."""

    span: int
    name: str
    begins: int
    ends: int | None
    said: StepTag

    def holds(self, begins: int, ends: int | None) -> bool:
        """Whether a tag lies within this one."""
        return self.ends is None or (ends is not None and begins < self.ends and ends <= self.ends)


def infer_steps(spans: pl.DataFrame) -> pl.DataFrame:
    """Steps by their tags, in order of time: the columns of `steps` but rank, and `span`.

    Tags within a tag describe the same step. The device's copy of an annotation counts only
    where the host's is not in the file, on one stream; `ProfilerStep#N` and XLA's markers only
    where no other tag is. Steps are numbered from 1, or as these say.
    """
    steps = list(_merged(_tags(spans)))
    rows = [_row(number, step) for number, step in zip(_numbers(steps), steps, strict=True)]
    schema = {name: dtype for name, dtype in polars_schema(STEPS).items() if name != "rank"}
    return pl.DataFrame(rows, schema={**schema, "span": pl.Int64}, orient="row")


def unread_tags(spans: pl.DataFrame) -> dict[str, int]:
    """How often each annotation is there that looks like a tag of a step and is not understood."""
    names = Counter(_annotations(spans)["name"].to_list())
    return {name: num for name, num in names.most_common() if is_unread(name)}


def about_unread(unread: dict[str, int]) -> list[str]:
    """A sentence with the most frequent of them, where there are any."""
    if not unread:
        return []
    first = next(iter(unread))
    shown = first if len(first) <= _SHOWN_CHARS else f"{first[:_SHOWN_CHARS]}..."
    more = f" and {len(unread) - 1:,} other texts" if len(unread) > 1 else ""
    return [f"no steps of {sum(unread.values()):,} {UNREAD}: {shown}{more}"]


def _numbers(steps: list[_Step]) -> list[int]:
    own = [step.said.number for step in steps if step.said.number is not None]
    return own if len(set(own)) == len(steps) else list(range(1, len(steps) + 1))


def _row(number: int, step: _Step) -> dict[str, object]:
    said = asdict(step.said)
    del said["number"]
    return said | {
        "step": number,
        "ts_ns": step.begins,
        "dur_ns": None if step.ends is None else step.ends - step.begins,
        "tag": step.name,
        "inferred": said.pop("grammar"),
        "span": step.span,
    }


def _tags(spans: pl.DataFrame) -> list[_Step]:
    """All tags that count, in order of time, outer before inner."""
    tags = [
        _Step(span, name, begins, None if dur is None else begins + dur, said)
        for span, name, begins, dur in _annotations(spans).iter_rows()
        if (said := parse_tag(name))
    ]
    return [tag for tag in tags if tag.said.grammar not in MARKERS] or tags


def _annotations(spans: pl.DataFrame) -> pl.DataFrame:
    """What may be a tag: span, name, ts_ns and dur_ns."""
    lasting = pl.col("form").is_in(["slice", "unfinished"])
    texts = pl.col("name", "category", "track").cast(pl.String)
    named = spans.filter(_may_be_tag(spans["name"]) & lasting).with_columns(texts)
    category = pl.col("category").fill_null("")
    named = named.filter(~category.is_in(NOT_TAGS))
    host = named.filter(category != GPU_ANNOTATION)
    device = named.filter(category == GPU_ANNOTATION).join(host, on="name", how="anti")
    stream = device["track"].mode().sort().head(1)
    return (
        pl.concat([host, device.filter(pl.col("track").is_in(stream.implode()))])
        .sort("ts_ns", -pl.col("dur_ns").fill_null(FOREVER), "span")
        .select("span", "name", "ts_ns", "dur_ns")
    )


def _may_be_tag(names: pl.Series) -> pl.Series:
    distinct, number = numbered(names)
    return pl.Series(looks_like_tag(distinct).to_numpy()[number])


def _merged(tags: list[_Step]) -> Iterator[_Step]:
    step: _Step | None = None
    for tag in tags:
        if step is not None and step.holds(tag.begins, tag.ends):
            step.said = joined(step.said, tag.said)
            continue
        if step is not None:
            yield step
        step = tag
    if step is not None:
        yield step
