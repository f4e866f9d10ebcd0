"""Which recorded step each step of a profile is: by their order, their tokens and their times.

Steps of a profile follow each other as those recorded do, so one number says all: at which
recorded step the first of the profile is. Of the numbers at which all tokens agree the one counts
at which the times fit best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.errors import TraceError
from stepscope.ingest.times import FAR_NS

MOST_COMPARED = 100_000_000
"""So many pairs of steps are compared; of larger traces those near in time alone."""
NEAR = 1_000
FEW = 3
"""Of fewer steps than these the tokens alone do not tell which they are."""
MOST_OF_THEM = 0.9
"""Of the steps: so many lie in those recorded but for half a step, or they are not these."""
STEP = {"step": pl.Int64, "begins": pl.Int64, "ends": pl.Int64, "tokens": pl.Int64}
"""A step and when it was: the columns of both sides; tokens may be null."""
Ints = npt.NDArray[np.int64]
_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Pairing:
    """Steps of a profile (`own`) with the recorded ones (`step`), and how well their times fit.

    moved_ns     what is added to the profile's times, 0 where they fit as they are
    median_ns    how far, in the median and at most, a tag is outside of its recorded step after
    most_ns      that: 0 where all lie within
    num_alone    steps of the profile that were not recorded
    """

    steps: pl.DataFrame
    moved_ns: int
    median_ns: int
    most_ns: int
    num_alone: int


def paired(recorded: pl.DataFrame, profiled: pl.DataFrame, where: str) -> Pairing:
    """Pair the steps of a profile with recorded ones, both in order of time as `STEP` has them.

    Raises `TraceError` where they do not fit.
    """
    if recorded.is_empty():
        raise _misfit("no recorded step ran anything", where)
    if profiled.is_empty():
        raise _misfit("no step's tag is in the profile", where)
    theirs, ours = _tokens(recorded), _tokens(profiled)
    places = [at for at in _places(recorded, profiled) if _agree(theirs, ours, at)]
    if not places:
        raise _misfit(_said_of_tokens(recorded, profiled), where)
    fits = [_fit(recorded, profiled, at) for at in places]
    best = min(fits, key=lambda fit: (fit.apart_ns, fit.begin_apart_ns))
    tells = len(places) == 1 and len(best.steps) >= FEW
    if best.apart_ns > best.bearable_ns and not tells:
        raise _misfit(
            f"its steps are {_ms(best.apart_ns)} from those recorded with as many tokens", where
        )
    moved_ns = _move(best.steps)
    outside = _outside(best.steps.with_columns(pl.col("from_ns", "to_ns") + moved_ns))
    if (far_ns := int(np.quantile(outside, MOST_OF_THEM, method="higher"))) > best.bearable_ns:
        raise _misfit(f"its steps lie up to {_ms(far_ns)} outside of those recorded", where)
    return Pairing(
        best.steps.with_columns(pl.col("from_ns", "to_ns") + moved_ns),
        moved_ns,
        int(np.median(outside)),
        int(outside.max()),
        len(profiled) - len(best.steps),
    )


@dataclass(frozen=True, slots=True)
class _Fit:
    """Steps side by side, and how far their times are apart."""

    steps: pl.DataFrame
    apart_ns: int
    begin_apart_ns: int
    bearable_ns: int


def _misfit(what: str, where: str) -> TraceError:
    todo = "give the recording and the profile of one process, taken at the same time"
    return TraceError(f"the profile does not fit the recording: {what}", where=where, todo=todo)


def _said_of_tokens(recorded: pl.DataFrame, profiled: pl.DataFrame) -> str:
    first = profiled["tokens"].head(4).to_list()
    shown = ", ".join("?" if each is None else f"{each:,}" for each in first)
    return (
        f"nowhere among {len(recorded):,} recorded steps do {len(profiled):,} follow each other "
        f"with the tokens of its own ({shown}, ...)"
    )


def _tokens(steps: pl.DataFrame) -> Ints:
    found: Ints = steps["tokens"].fill_null(_UNKNOWN).to_numpy()
    return found


def _places(recorded: pl.DataFrame, profiled: pl.DataFrame) -> range:
    """At which recorded steps the profile may begin; before the first where it began sooner."""
    num, own = len(recorded), len(profiled)
    least = min(own - 1, own // 2)
    every = range(-least, num - (own - least) + 1) if num >= own - least else range(-least, 1)
    if num * own <= MOST_COMPARED:
        return every
    begins = recorded["begins"].to_numpy()
    at = np.searchsorted(begins, profiled["begins"].to_numpy(), "right") - 1 - np.arange(own)
    middle = int(np.median(at))
    return range(max(every.start, middle - NEAR), min(every.stop, middle + NEAR + 1))


def _overlap(num: int, own: int, at: int) -> tuple[slice, slice]:
    first, last = max(at, 0), min(num, at + own)
    return slice(first, last), slice(first - at, last - at)


def _agree(theirs: Ints, ours: Ints, at: int) -> bool:
    of_run, of_profile = _overlap(len(theirs), len(ours), at)
    some, others = theirs[of_run], ours[of_profile]
    return bool(some.size and ((some == others) | (some == _UNKNOWN) | (others == _UNKNOWN)).all())


def _fit(recorded: pl.DataFrame, profiled: pl.DataFrame, at: int) -> _Fit:
    of_run, of_profile = _overlap(len(recorded), len(profiled), at)
    tags = profiled[of_profile].select(own="step", from_ns="begins", to_ns="ends")
    steps = pl.concat([recorded[of_run], tags], how="horizontal")
    begun = (steps["from_ns"] - steps["begins"]).abs().median()
    length = (steps["ends"] - steps["begins"]).clip(0, FAR_NS).median()
    bearable = int(length) // 2 if isinstance(length, int | float) else 0
    begin_apart = int(begun) if isinstance(begun, int | float) else 0
    return _Fit(steps, int(np.median(_outside(steps))), begin_apart, bearable)


def _outside(steps: pl.DataFrame) -> Ints:
    """How far each tag is outside of its recorded step."""
    before, behind = pl.col("begins") - pl.col("from_ns"), pl.col("to_ns") - pl.col("ends")
    outside = pl.max_horizontal(before, behind, pl.lit(0, pl.Int64))
    found: Ints = steps.select(outside).to_series().to_numpy()
    return found


def _move(steps: pl.DataFrame) -> int:
    """The least by which the profile's times are moved so that tags lie in their steps.

    Where nothing moves all of them there, it is the median of what each of them would need.
    """
    least, most = (
        (steps[ours] - steps[own]).to_numpy()
        for ours, own in (("begins", "from_ns"), ("ends", "to_ns"))
    )
    if least.max() <= most.min():
        return int(np.clip(0, least.max(), most.min()))
    needed = np.where(least > 0, least, np.where(most < 0, most, 0))
    return int(np.median(needed))


def _ms(ns: int) -> str:
    return f"{ns / 1e6:,.3f} ms"
