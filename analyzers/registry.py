"""All rules, and how to pick some of them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from stepscope.analyzers.rule import Rule
from stepscope.analyzers.rules.cor001_mix_on_occupied_group import MixOnOccupiedGroup
from stepscope.analyzers.rules.cor002_core_double_booked import CoreDoubleBooked
from stepscope.analyzers.rules.cor003_mix_parts_skewed import MixPartsSkewed
from stepscope.analyzers.rules.cor005_parked_behind_busy import ParkedBehindBusy
from stepscope.analyzers.rules.cor006_idle_core_ready_work import IdleCoreReadyWork
from stepscope.analyzers.rules.kvb003_preempted_with_room import PreemptedWithRoom
from stepscope.analyzers.rules.stv001_request_starved import RequestStarved
from stepscope.analyzers.rules.stv002_fcfs_inversion import FcfsInversion
from stepscope.analyzers.rules.stv003_bucket_starved import BucketStarved
from stepscope.analyzers.rules.trc001_not_closed import NotClosed
from stepscope.analyzers.rules.trc003_inferred import Inferred
from stepscope.ingest.errors import ConfigError

RULES: tuple[Rule, ...] = (
    MixOnOccupiedGroup(),
    CoreDoubleBooked(),
    MixPartsSkewed(),
    ParkedBehindBusy(),
    IdleCoreReadyWork(),
    RequestStarved(),
    FcfsInversion(),
    BucketStarved(),
    PreemptedWithRoom(),
    NotClosed(),
    Inferred(),
)


def by_code(code: str) -> Rule:
    """The rule of that code or name, in upper or lower case.

    Raises ConfigError, naming near matches, when there is none.
    """
    for rule in RULES:
        if code.upper() == rule.code or code.lower() == rule.name:
            return rule
    raise ConfigError(f"there is no rule {code!r}", todo=_near(code))


def select(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[Rule, ...]:
    """The rules that `select` names (all when it is empty) without those that `ignore` names.

    An entry is a code, a name, or the letters that a family of codes starts with (`COR`, `STV0`).
    Raises ConfigError when an entry fits no rule.
    """
    chosen = {code for entry in select for code in _codes(entry)} or {rule.code for rule in RULES}
    left_out = {code for entry in ignore for code in _codes(entry)}
    return tuple(rule for rule in RULES if rule.code in chosen - left_out)


def _codes(entry: str) -> tuple[str, ...]:
    prefix = entry.strip().upper()
    family = tuple(rule.code for rule in RULES if prefix and rule.code.startswith(prefix))
    return family or (by_code(entry.strip()).code,)


def _near(code: str) -> str:
    codes = {rule.code: rule for rule in RULES}
    names = {rule.name: rule for rule in RULES}
    near = get_close_matches(code.upper(), codes, cutoff=0.5)
    near = near or [names[name].code for name in get_close_matches(code.lower(), names)]
    if near:
        return "did you mean " + " or ".join(f"{c} ({codes[c].name})" for c in near) + "?"
    return "the rules are " + ", ".join(codes)
