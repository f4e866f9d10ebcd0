"""A recorded trace and a profile of the same run, as one trace on the recording's clock.

The recording's steps stay as they are, with what they launched; those that were inferred from the
profile's tags are dropped. Both clocks tell Unix time (`baseTimeNanoseconds` of torch's file), and
steps tell whether they agree.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.ingest.derive.gpu_times import gpu_times
from stepscope.ingest.derive.launches import on_device
from stepscope.ingest.errors import TraceError
from stepscope.ingest.manifest import MERGED
from stepscope.ingest.merging.assigning import NEEDED, assigned
from stepscope.ingest.merging.merged_manifest import FROM_PROFILE, Merged, merged_manifest
from stepscope.ingest.merging.paired_steps import Pairing, paired
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

DATED_NS = 10**18
"""Times after 2001, which none that count from a start of their own reach."""
NOT_RUN = ("idle", "dummy")
_GPU = ("gpu_ts_ns", "gpu_dur_ns", "gpu_busy_ns")


def merge(run: Trace, profile: Trace) -> tuple[Trace, list[Merged]]:
    """Put a profile's spans onto a recording's clock and steps; raises `TraceError`."""
    _check(run, profile)
    by_ns = profile.manifest.clock.epoch_ns - run.manifest.clock.epoch_ns
    tags = _profiled(profile, by_ns)
    spans = profile.spans.select("rank", *NEEDED).collect().with_row_index("row")
    found: list[tuple[Merged, Pairing]] = []
    steps = [pl.DataFrame(schema={"row": pl.UInt32, "step": pl.Int64})]
    for rank in tags["rank"].unique().sort().to_list():
        of_rank = _rank_of(run, rank)
        recorded = _recorded(run, of_rank)
        pairing = paired(recorded, tags.filter(pl.col("rank") == rank).drop("rank"), profile.name)
        own = spans.filter(pl.col("rank") == rank)
        own = own.with_columns(pl.col("ts_ns") + by_ns + pairing.moved_ns)
        whose = assigned(own.drop("rank", "row"), pairing.steps)
        steps.append(pl.DataFrame([own["row"], whose.alias("step")]))
        found.append((_merged(rank, of_rank, pairing, own["category"], whose), pairing))
    moved = {each.rank: by_ns + each.moved_ns for each, _ in found}
    step = spans.select("row").join(pl.concat(steps), on="row", how="left", maintain_order="left")
    told = [each for each, _ in found]
    frames = _frames(run, profile, moved, by_ns, step["step"], {m.rank: p for m, p in found})
    return run.replacing(frames, merged_manifest(run, profile, told)), told


def _check(run: Trace, profile: Trace) -> None:
    clock = run.manifest.clock
    if MERGED in run.manifest.config:
        raise TraceError("a profile is merged into it already", where=run.name)
    if not _has_recorded(run):
        what = "no step was recorded in it" if not run.has("steps") else "its steps are inferred"
        raise TraceError(what, where=run.name, todo="give the recording first, then the profile")
    if clock.kind == "virtual" or not _is_dated(run):
        what = "its clock does not tell Unix time, so a profile has no place in it"
        raise TraceError(what, where=run.name, todo="record with time.time_ns")
    if not profile.has("spans"):
        what = "it is no profile: no span of a profiler is in it"
        raise TraceError(what, where=profile.name, todo="give what torch.profiler wrote")
    if not profile.has("steps"):
        todo = "profile with the engine's tags of steps (vLLM: execute_context_..., see the docs)"
        raise TraceError("no step's tag is in the profile", where=profile.name, todo=todo)
    if not _is_dated(profile):
        what = "the profile does not say when it was (baseTimeNanoseconds)"
        raise TraceError(what, where=profile.name, todo="profile with a newer torch")


def _has_recorded(run: Trace) -> bool:
    return not run.steps.filter(pl.col("inferred").is_null()).head(1).collect().is_empty()


def _is_dated(trace: Trace) -> bool:
    begun = trace.steps.select(pl.col("ts_ns").min()).collect().item()
    return begun is not None and begun + trace.manifest.clock.epoch_ns > DATED_NS


def _rank_of(run: Trace, rank: int) -> int:
    """The recorded rank that a profile's is of: its own, or the only one, whose worker it is."""
    if rank in run.manifest.ranks:
        return rank
    if len(run.manifest.ranks) == 1:
        return run.manifest.ranks[0]
    listed = ", ".join(map(str, run.manifest.ranks[:16]))
    todo = "give profiles of the recorded ranks"
    what = f"rank {rank} of the profile was not recorded: the recording has {listed}"
    raise TraceError(what, where=run.name, todo=todo)


def _recorded(run: Trace, rank: int) -> pl.DataFrame:
    """Steps of a rank that ran something, in order of time: those of `STEP`, and `runs_ns`."""
    own = pl.col("rank") == rank
    rows = (
        run.batch_rows.filter(own)
        .group_by("step")
        .agg(pl.col("num_tokens").sum().alias("of_rows"))
        .collect()
    )
    told = run.steps.filter(own, pl.col("inferred").is_null()).collect()
    tokens = pl.coalesce(pl.col("num_prefill_tokens") + pl.col("num_decode_tokens"), "of_rows")
    next_ns = pl.col("ts_ns").shift(-1).fill_null(FAR_NS)
    return (
        told.sort("ts_ns", "step")
        .join(rows, on="step", how="left", maintain_order="left")
        .select(
            "step",
            begins=pl.min_horizontal("formed_ns", "ts_ns"),
            ends=pl.coalesce(pl.col("ts_ns") + pl.col("dur_ns"), next_ns),
            tokens=tokens.cast(pl.Int64),
            runs_ns="ts_ns",
            kind="kind",
        )
        .filter(~pl.col("kind").is_in(NOT_RUN) & (pl.col("tokens") != 0).fill_null(value=True))
        .drop("kind")
    )


def _profiled(profile: Trace, by_ns: int) -> pl.DataFrame:
    """Steps of the profile's tags, of each rank in order of time, as `paired_steps.STEP`."""
    lasted = pl.coalesce("cpu_dur_ns", "dur_ns", pl.lit(0))
    return (
        profile.steps.filter(~pl.col("kind").is_in(NOT_RUN).fill_null(value=False))
        .sort("rank", "ts_ns", "step")
        .select(
            "rank",
            "step",
            begins=pl.col("ts_ns") + by_ns,
            ends=pl.col("ts_ns") + by_ns + lasted,
            tokens=(pl.col("num_prefill_tokens") + pl.col("num_decode_tokens")).cast(pl.Int64),
        )
        .collect()
    )


def _merged(
    rank: int, of_rank: int, pairing: Pairing, categories: pl.Series, steps: pl.Series
) -> Merged:
    is_executed = on_device(categories)
    numbers = pairing.steps["step"]
    return Merged(
        rank, of_rank, len(numbers), int(numbers[0]), int(numbers[-1]), pairing.num_alone,
        pairing.moved_ns, pairing.median_ns, pairing.most_ns,
        int(is_executed.sum()), int((is_executed & steps.is_not_null()).sum()),
    )  # fmt: skip


def _frames(
    run: Trace,
    profile: Trace,
    moved: Mapping[int, int],
    by_ns: int,
    steps: pl.Series,
    pairings: Mapping[int, Pairing],
) -> dict[str, pl.LazyFrame]:
    """Tables of both; `steps` are those of the profile's spans, row by row."""
    later = pl.col("rank").replace_strict(moved, default=by_ns, return_dtype=pl.Int64)
    theirs = {
        name: profile.table(name).with_columns(pl.col("ts_ns") + later) for name in FROM_PROFILE
    }
    spans = pl.concat([theirs["spans"].drop("step"), steps.to_frame().lazy()], how="horizontal")
    theirs["spans"] = _behind(run, spans)
    theirs["collectives"] = _with_recorded_steps(theirs["collectives"], pairings)
    frames = {
        name: pl.concat([run.table(name), frame.select(run.table(name).collect_schema().names())])
        for name, frame in theirs.items()
        if profile.has(name)
    }
    executed = gpu_times(
        theirs["spans"].select("rank", "step", "ts_ns", "dur_ns", "category").collect()
    )
    return frames | {"steps": _with_gpu(run, executed, pairings)}


def _behind(run: Trace, spans: pl.LazyFrame) -> pl.LazyFrame:
    """Spans numbered behind those that were recorded."""
    last = run.spans.select(pl.col("span").max()).collect().item()
    further = 0 if last is None else int(last) + 1
    return spans.with_columns(pl.col("span", "parent") + further)


def _with_recorded_steps(rows: pl.LazyFrame, pairings: Mapping[int, Pairing]) -> pl.LazyFrame:
    names = rows.collect_schema().names()
    pairs = pl.concat(
        pairing.steps.select(
            pl.lit(rank, pl.Int32).alias("rank"), pl.col("own").alias("step"),
            pl.col("step").alias("recorded"),
        )
        for rank, pairing in pairings.items()
    )  # fmt: skip
    told = rows.join(pairs.lazy(), on=["rank", "step"], how="left", maintain_order="left")
    return told.with_columns(pl.col("recorded").alias("step")).select(names)


def _with_gpu(run: Trace, executed: pl.DataFrame, pairings: Mapping[int, Pairing]) -> pl.LazyFrame:
    """Recorded steps with what the profile says of the CPU and the GPU; what was recorded stays.

    But of a batch that was formed while the one before ran a recorder knows only that it had begun
    to run when that one ended: where its tag is before that, it began with its tag.
    """
    tags = pl.concat(
        pairing.steps.select(pl.lit(rank, pl.Int32).alias("rank"), "step", "from_ns", "to_ns")
        for rank, pairing in pairings.items()
    )
    is_ahead = pl.col("from_ns").is_between("formed_ns", "ts_ns")
    begun = pl.when(is_ahead).then("from_ns").otherwise("ts_ns")
    sooner = pl.col("ts_ns") - begun
    in_tag = (pl.col("to_ns") - begun).clip(lower_bound=0)
    found = {name: pl.coalesce(name, f"{name}_found") for name in _GPU}
    names = run.steps.collect_schema().names()
    renamed = executed.rename({name: f"{name}_found" for name in _GPU})
    keys = ["rank", "step"]
    return (
        run.steps.join(renamed.lazy(), on=keys, how="left", maintain_order="left")
        .join(tags.lazy(), on=keys, how="left", maintain_order="left")
        .with_columns(
            ts_ns=begun, dur_ns=pl.col("dur_ns") + sooner,
            cpu_dur_ns=pl.coalesce("cpu_dur_ns", in_tag), **found,
        )
        .select(names)
    )  # fmt: skip
