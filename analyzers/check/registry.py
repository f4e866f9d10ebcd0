"""All rules, and how to pick some of them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from operator import ne

from stepscope.analyzers.check.plugins import LETTERS, Installed, installed
from stepscope.analyzers.findings.rule import Rule
from stepscope.analyzers.rules.bat.bat001_mixed_never_forms import MixedNeverForms
from stepscope.analyzers.rules.bat.bat002_long_prefill_saturates import LongPrefillSaturates
from stepscope.analyzers.rules.bat.bat003_budget_exceeded import BudgetExceeded
from stepscope.analyzers.rules.bat.bat004_double_scheduled import DoubleScheduled
from stepscope.analyzers.rules.bat.bat005_partial_token_leak import PartialTokenLeak
from stepscope.analyzers.rules.bat.bat006_logits_arity import LogitsArity
from stepscope.analyzers.rules.bat.bat007_segment_not_rebased import SegmentNotRebased
from stepscope.analyzers.rules.bat.bat008_companion_not_sliced import CompanionNotSliced
from stepscope.analyzers.rules.bat.bat009_metadata_missing import MetadataMissing
from stepscope.analyzers.rules.bat.bat010_path_mismatch import PathMismatch
from stepscope.analyzers.rules.bat.bat011_slow_path_for_width import SlowPathForWidth
from stepscope.analyzers.rules.bat.bat012_path_never_taken import PathNeverTaken
from stepscope.analyzers.rules.bat.bat013_masked_row_leak import MaskedRowLeak
from stepscope.analyzers.rules.bat.bat014_drafts_rejected import DraftsRejected
from stepscope.analyzers.rules.bat.bat015_reserve_unused import ReserveUnused
from stepscope.analyzers.rules.buf.buf001_overwritten_in_flight import OverwrittenInFlight
from stepscope.analyzers.rules.buf.buf002_shared_view_clobbered import SharedViewClobbered
from stepscope.analyzers.rules.buf.buf003_unordered_read import UnorderedRead
from stepscope.analyzers.rules.buf.buf004_row_overwritten import RowOverwritten
from stepscope.analyzers.rules.buf.buf005_scratch_shared import ScratchShared
from stepscope.analyzers.rules.buf.buf006_peer_disturbed import PeerDisturbed
from stepscope.analyzers.rules.col.col001_order_mismatch import OrderMismatch
from stepscope.analyzers.rules.col.col002_rank_missing import RankMissing
from stepscope.analyzers.rules.col.col003_slot_mismatch import SlotMismatch
from stepscope.analyzers.rules.col.col004_unallocated_slot import UnallocatedSlot
from stepscope.analyzers.rules.col.col005_reserved_code import ReservedCode
from stepscope.analyzers.rules.col.col006_protocol_skew import ProtocolSkew
from stepscope.analyzers.rules.col.col007_collective_alone import CollectiveAlone
from stepscope.analyzers.rules.col.col008_straggler import Straggler
from stepscope.analyzers.rules.col.col009_kind_disagreement import KindDisagreement
from stepscope.analyzers.rules.col.col010_load_imbalance import LoadImbalance
from stepscope.analyzers.rules.cor.cor001_mix_on_occupied_group import MixOnOccupiedGroup
from stepscope.analyzers.rules.cor.cor002_core_double_booked import CoreDoubleBooked
from stepscope.analyzers.rules.cor.cor003_mix_parts_skewed import MixPartsSkewed
from stepscope.analyzers.rules.cor.cor004_mix_starved import MixStarved
from stepscope.analyzers.rules.cor.cor005_pending_behind_busy import PendingBehindBusy
from stepscope.analyzers.rules.cor.cor006_idle_core_ready_work import IdleCoreReadyWork
from stepscope.analyzers.rules.cor.cor007_dependency_violated import DependencyViolated
from stepscope.analyzers.rules.cor.cor008_sync_start_split import SyncStartSplit
from stepscope.analyzers.rules.cor.cor009_dispatch_bound import DispatchBound
from stepscope.analyzers.rules.cor.cor010_dispatch_stalled import DispatchStalled
from stepscope.analyzers.rules.cor.cor011_wrong_core import WrongCore
from stepscope.analyzers.rules.cor.cor012_blocks_not_run import BlocksNotRun
from stepscope.analyzers.rules.cor.cor013_tile_overwritten import TileOverwritten
from stepscope.analyzers.rules.eqv.eqv001_diverged_from_solo import DivergedFromSolo
from stepscope.analyzers.rules.eqv.eqv002_placeholder_consumed import PlaceholderConsumed
from stepscope.analyzers.rules.eqv.eqv003_chunking_changes_output import ChunkingChangesOutput
from stepscope.analyzers.rules.eqv.eqv004_not_a_number import NotANumber
from stepscope.analyzers.rules.kvb.kvb001_block_double_owned import BlockDoubleOwned
from stepscope.analyzers.rules.kvb.kvb002_block_leaked import BlockLeaked
from stepscope.analyzers.rules.kvb.kvb003_preempted_with_room import PreemptedWithRoom
from stepscope.analyzers.rules.kvb.kvb004_preemption_thrash import PreemptionThrash
from stepscope.analyzers.rules.kvb.kvb005_dirty_recycle import DirtyRecycle
from stepscope.analyzers.rules.kvb.kvb006_admit_copies_all import AdmitCopiesAll
from stepscope.analyzers.rules.kvb.kvb007_wrong_request_taken import WrongRequestTaken
from stepscope.analyzers.rules.kvb.kvb008_hold_and_wait import HoldAndWait
from stepscope.analyzers.rules.kvb.kvb009_retraction_storm import RetractionStorm
from stepscope.analyzers.rules.kvb.kvb010_reset_between_chunks import ResetBetweenChunks
from stepscope.analyzers.rules.stv.stv001_request_starved import RequestStarved
from stepscope.analyzers.rules.stv.stv002_fcfs_inversion import FcfsInversion
from stepscope.analyzers.rules.stv.stv003_bucket_starved import BucketStarved
from stepscope.analyzers.rules.stv.stv004_decode_stalled import DecodeStalled
from stepscope.analyzers.rules.stv.stv005_prefill_starved import PrefillStarved
from stepscope.analyzers.rules.stv.stv006_head_of_line_blocked import HeadOfLineBlocked
from stepscope.analyzers.rules.stv.stv007_schedule_livelock import ScheduleLivelock
from stepscope.analyzers.rules.stv.stv008_premature_reject import PrematureReject
from stepscope.analyzers.rules.stv.stv009_idle_capacity import IdleCapacity
from stepscope.analyzers.rules.stv.stv010_silent_stall import SilentStall
from stepscope.analyzers.rules.stv.stv011_decode_starved import DecodeStarved
from stepscope.analyzers.rules.stv.stv012_ended_in_error import EndedInError
from stepscope.analyzers.rules.stv.stv014_never_fits import NeverFits
from stepscope.analyzers.rules.stv.stv015_silent_reject import SilentReject
from stepscope.analyzers.rules.stv.stv016_queue_with_room import QueueWithRoom
from stepscope.analyzers.rules.stv.stv017_transfer_backlog import TransferBacklog
from stepscope.analyzers.rules.stv.stv018_decode_in_buckets import DecodeInBuckets
from stepscope.analyzers.rules.stv.stv020_ready_not_noticed import ReadyNotNoticed
from stepscope.analyzers.rules.stv.stv021_no_progress import NoProgress
from stepscope.analyzers.rules.stv.stv022_reports_stopped import ReportsStopped
from stepscope.analyzers.rules.stv.stv023_engine_died import EngineDied
from stepscope.analyzers.rules.stv.stv024_priority_inverted import PriorityInverted
from stepscope.analyzers.rules.stv.stv025_long_queue import LongQueue
from stepscope.analyzers.rules.stv.stv026_request_stuck import RequestStuck
from stepscope.analyzers.rules.trc.trc001_not_closed import NotClosed
from stepscope.analyzers.rules.trc.trc002_clock_backwards import ClockBackwards
from stepscope.analyzers.rules.trc.trc003_inferred import Inferred
from stepscope.analyzers.rules.trc.trc004_rank_lost import RankLost
from stepscope.analyzers.rules.trc.trc005_recompute_mislabelled import RecomputeMislabelled
from stepscope.analyzers.rules.trc.trc006_requests_left_open import RequestsLeftOpen
from stepscope.analyzers.rules.trc.trc007_rows_contradict import RowsContradict
from stepscope.ingest.entry_points import tell_once
from stepscope.ingest.errors import ConfigError

RULES: tuple[Rule, ...] = (
    MixOnOccupiedGroup(),
    CoreDoubleBooked(),
    MixPartsSkewed(),
    MixStarved(),
    PendingBehindBusy(),
    IdleCoreReadyWork(),
    DependencyViolated(),
    SyncStartSplit(),
    DispatchBound(),
    DispatchStalled(),
    WrongCore(),
    BlocksNotRun(),
    TileOverwritten(),
    RequestStarved(),
    FcfsInversion(),
    BucketStarved(),
    DecodeStalled(),
    PrefillStarved(),
    HeadOfLineBlocked(),
    ScheduleLivelock(),
    PrematureReject(),
    IdleCapacity(),
    SilentStall(),
    DecodeStarved(),
    EndedInError(),
    NeverFits(),
    SilentReject(),
    QueueWithRoom(),
    TransferBacklog(),
    DecodeInBuckets(),
    ReadyNotNoticed(),
    NoProgress(),
    ReportsStopped(),
    EngineDied(),
    PriorityInverted(),
    LongQueue(),
    RequestStuck(),
    MixedNeverForms(),
    LongPrefillSaturates(),
    BudgetExceeded(),
    DoubleScheduled(),
    PartialTokenLeak(),
    LogitsArity(),
    SegmentNotRebased(),
    CompanionNotSliced(),
    MetadataMissing(),
    PathMismatch(),
    SlowPathForWidth(),
    PathNeverTaken(),
    MaskedRowLeak(),
    DraftsRejected(),
    ReserveUnused(),
    BlockDoubleOwned(),
    BlockLeaked(),
    PreemptedWithRoom(),
    PreemptionThrash(),
    DirtyRecycle(),
    AdmitCopiesAll(),
    WrongRequestTaken(),
    HoldAndWait(),
    RetractionStorm(),
    ResetBetweenChunks(),
    OverwrittenInFlight(),
    SharedViewClobbered(),
    UnorderedRead(),
    RowOverwritten(),
    ScratchShared(),
    PeerDisturbed(),
    OrderMismatch(),
    RankMissing(),
    SlotMismatch(),
    UnallocatedSlot(),
    ReservedCode(),
    ProtocolSkew(),
    CollectiveAlone(),
    Straggler(),
    KindDisagreement(),
    LoadImbalance(),
    DivergedFromSolo(),
    PlaceholderConsumed(),
    ChunkingChangesOutput(),
    NotANumber(),
    NotClosed(),
    ClockBackwards(),
    Inferred(),
    RankLost(),
    RecomputeMislabelled(),
    RequestsLeftOpen(),
    RowsContradict(),
)


FAMILIES = ("STV", "BAT", "KVB", "BUF", "COL", "COR", "EQV", "TRC")
"""Families in the order in which they are listed: what most engines have comes first."""


@cache
def of_others() -> Installed:
    """What other packages bring, looked up once."""
    return installed(RULES)


def all_rules() -> tuple[Rule, ...]:
    """Ours, then those that other packages bring; raises ConfigError where one of these is none."""
    for error in of_others().refused:
        raise error
    return (*RULES, *of_others().rules)


def usable_rules() -> tuple[Rule, ...]:
    """The same without what is none, which is told on stderr: for looking, not for a verdict."""
    for error in of_others().refused:
        tell_once(str(error))
    return (*RULES, *of_others().rules)


def by_family(rules: Iterable[Rule]) -> list[Rule]:
    """The rules as they are listed: by FAMILIES, then those that other packages bring."""
    places = {family: place for place, family in enumerate(FAMILIES)}
    return sorted(rules, key=lambda rule: places.get(rule.code[:LETTERS], len(places)))


def by_code(code: str) -> Rule:
    """The rule of that code or name, in upper or lower case.

    Raises ConfigError, naming near matches, when there is none. Whoever asks for one of ours is
    answered without a look at what else is installed.
    """
    found = _named(code, RULES) or _named(code, of_others().rules) or _named(code, all_rules())
    if found is None:
        raise ConfigError(f"there is no rule {code!r}", todo=_near(code))
    return found


def _named(code: str, rules: Iterable[Rule]) -> Rule | None:
    fits = (rule for rule in rules if code.upper() == rule.code or code.lower() == rule.name)
    return next(fits, None)


def select(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[Rule, ...]:
    """The rules that `select` names (all when it is empty) without those that `ignore` names.

    An entry is a code, a name, or the letters that a family of codes starts with (`COR`, `STV0`).
    Raises ConfigError when an entry fits no rule. Who selects among ours is answered without a look
    at what else is installed.
    """
    chosen = {code for entry in select for code in _codes(entry)}
    left_out = {code for entry in ignore for code in _codes(entry)}
    is_ours = bool(chosen) and chosen <= {rule.code for rule in RULES}
    asked = (rule for rule in (RULES if is_ours else all_rules()) if rule.code not in left_out)
    return tuple(rule for rule in asked if not chosen or rule.code in chosen)


def _codes(entry: str) -> tuple[str, ...]:
    if found := _named(entry.strip(), RULES):
        return (found.code,)
    prefix = entry.strip().upper()
    # Codes of others do not begin with the three letters that any of ours begin with.
    ours = _family(prefix, RULES) if len(prefix) >= LETTERS else ()
    return ours or _family(prefix, all_rules()) or (by_code(entry.strip()).code,)


def _family(prefix: str, rules: Iterable[Rule]) -> tuple[str, ...]:
    return tuple(rule.code for rule in rules if prefix and rule.code.startswith(prefix))


def _near(code: str) -> str:
    codes = {rule.code: rule for rule in all_rules()}
    names = {rule.name: rule for rule in all_rules()}
    alike = get_close_matches(code.upper(), codes, n=len(codes), cutoff=0.5)
    near = sorted(alike, key=lambda each: sum(map(ne, each, code.upper())))[:3]
    near = near or [names[name].code for name in get_close_matches(code.lower(), names)]
    if near:
        return "did you mean " + " or ".join(f"{c} ({codes[c].name})" for c in near) + "?"
    return "the rules are " + ", ".join(codes)
