"""A recording that is followed: its latest rows, what was found in them, and how it goes on.

Both fronts ask one `Follower`, and work is done only when they do: rows are read when `refresh` is
called, and the rules run in a thread that it starts. Nobody who looks, nothing to do.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock, Thread

import polars as pl

from stepscope.analyzers.check.on_a_part import OF_A_PART, rules_of_a_part
from stepscope.analyzers.check.registry import usable_rules
from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.rule import ONLY_WHERE, Rule
from stepscope.app.live.found_so_far import Came, FoundSoFar
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.live.growing_trace import GrowingTrace, Recorded, RecordingState
from stepscope.ingest.live.recent_rows import RecentRows
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.trace import Trace

READ_EVERY_S = 0.25
"""Rows are not read more often, however often they are asked for."""
CHECK_EVERY_S = 1.0
"""The rules rest for so long after a check, and for as long as it took."""
RATE_OVER_S = 5.0
LACKS_OLDER = f"{ONLY_WHERE}no older rows were left out"


@dataclass(frozen=True, slots=True)
class Status:
    """How a recording goes on; counts are by table and of all its ranks.

    `num_rows` were recorded as far as is known, `num_kept` of them are here, all since
    `whole_since_ns`, and `num_left_out` are not. `num_unchecked` at least were let go before a
    check saw them. `rows_per_s` is None until two moments are known; `age_s` is how old the newest
    row is, on a clock that tells. `num_older_steps` rows of `steps` are drawn of what was left out.
    """

    revision: int
    state: RecordingState
    num_rows: Mapping[str, int]
    num_kept: Mapping[str, int]
    num_left_out: Mapping[str, int]
    num_older_steps: int = 0
    num_unchecked: int = 0
    num_given_up: int = 0
    whole_since_ns: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    last_step: int | None = None
    rows_per_s: float | None = None
    age_s: float | None = None
    dropped: Mapping[str, int] | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()
    num_withdrawn: int = 0
    num_untold: int = 0
    check_failed: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether any row is not here."""
        return any(self.num_left_out.values())


@dataclass(frozen=True, slots=True)
class Look:
    """What is shown at one moment: the rows as a trace, what was found, and how it stands.

    `result` is None until the rules have run. `trace` has all rows since `status.whole_since_ns`,
    and of what was before some of the steps, to be drawn.
    """

    trace: Trace
    result: CheckResult | None
    came: tuple[Came, ...]
    status: Status


class Follower:
    """Follows the recording at a path; any thread may ask."""

    def __init__(
        self,
        path: Path,
        *,
        rows: RecentRows | None = None,
        clock: Callable[[], float] = time.monotonic,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.path = path
        self._clock, self._now_ns = clock, now_ns
        self._source = GrowingTrace(path)
        self._rows = rows or RecentRows()
        self._found = FoundSoFar()
        self._result: CheckResult | None = None
        self._lock = Lock()
        self._read_at: float | None = None
        self._rates: deque[tuple[float, int]] = deque()
        self._manifest = Manifest("unknown", closed=False)
        self._last_step: int | None = None
        self._given_up, self._notes = 0, list[str]()
        self._check: Thread | None = None
        self._check_from = 0.0
        self._num_checked, self._num_unchecked = 0, 0
        self._check_failed = ""
        self._status = Status(0, RecordingState.RECORDING, {}, {}, {})
        self._kept_look: Look | None = None

    def refresh(self) -> Status:
        """Read what is new, unless that was just done, and have it checked; raises `OSError`."""
        with self._lock:
            now = self._clock()
            is_over = self._status.state is not RecordingState.RECORDING
            if not is_over and (self._read_at is None or now - self._read_at >= READ_EVERY_S):
                self._read(now)
            self._begin_check(now)
            return self._status

    def look(self) -> Look:
        """What is to be shown now: the same until the revision is another one."""
        with self._lock:
            status = self._status
            if self._kept_look is None or self._kept_look.status.revision != status.revision:
                trace = Trace(self._rows.drawn(), self._manifest, self._name, self.path)
                came = tuple(self._found.came)
                self._kept_look = Look(trace, self._told(self._result), came, status)
            return self._kept_look

    def wait_for_check(self) -> None:
        """Wait until no check is under way."""
        if self._check:
            self._check.join()

    @property
    def _name(self) -> str:
        return self.path.resolve().name

    def _read(self, now: float) -> None:
        self._read_at = now
        came = self._source.take()
        self._rows.add(came)
        self._manifest = _of_a_part(came.manifest, self._rows)
        self._given_up += came.given_up
        self._notes = [*self._notes, *came.notes][-20:]
        self._last_step = _last_step(came, self._last_step)
        total = self._rows.num_rows.total()
        self._rates.append((now, total))
        while len(self._rates) > 2 and now - self._rates[1][0] >= RATE_OVER_S:
            self._rates.popleft()
        is_other = came.is_new or came.state is not self._status.state
        self._tell(came, is_other=is_other)

    def _tell(self, came: Recorded, *, is_other: bool) -> None:
        rows, last_ns = self._rows, self._rows.last_ns
        has_clock = came.manifest.clock.kind == "wall" and last_ns is not None
        (then, before), (now, total) = self._rates[0], self._rates[-1]
        self._status = Status(
            self._status.revision + int(is_other),
            came.state,
            rows.num_rows,
            rows.num_kept,
            Counter(rows.num_left_out),
            rows.num_older_steps,
            self._num_unchecked,
            self._given_up,
            rows.whole_since_ns,
            rows.first_ns,
            last_ns,
            self._last_step,
            (total - before) / (now - then) if now > then else None,
            (self._now_ns() - (last_ns or 0)) / 1e9 if has_clock else None,
            came.dropped,
            came.reason,
            tuple(self._notes),
            len(self._found.came) - len(self._found.findings),
            self._found.num_untold,
            self._check_failed,
        )

    # ── the rules ────────────────────────────────────────────────────────────────────────────

    def _begin_check(self, now: float) -> None:
        """Have the rules run over what is here, where there is more than they have seen."""
        total = self._rows.num_rows.total()
        is_busy = self._check is not None and self._check.is_alive()
        if is_busy or now < self._check_from or total == self._num_checked or not total:
            return
        left_out = self._rows.num_left_out.total()
        self._num_unchecked += max(left_out - self._num_checked, 0)
        self._num_checked = total
        since_ns, step = self._rows.whole_since_ns, self._last_step
        is_cut = bool(left_out)
        trace = Trace(self._rows.frames(), self._manifest, self._name, self.path)
        self._check = Thread(
            target=self._run, args=(trace, since_ns, step, is_cut), daemon=True, name="check"
        )
        self._check.start()

    def _run(self, trace: Trace, since_ns: int | None, step: int | None, is_cut: bool) -> None:
        began = self._clock()
        failed, result = "", None
        try:
            rules = usable_rules()
            kept: tuple[Rule, ...] = rules_of_a_part(rules) if is_cut else tuple(rules)
            result = check(trace, kept)
            if is_cut:
                result = _with_lacking(result, [each.code for each in rules])
        except StepscopeError as error:
            failed = str(error)
        except Exception as error:
            failed = f"the check failed: {type(error).__name__}: {error}; report this as a bug"
        with self._lock:
            now = self._clock()
            self._check_from = now + max(CHECK_EVERY_S, now - began)
            is_other = self._check_failed != failed
            self._check_failed = failed
            if result is not None:
                judged = frozenset(result.counts)
                is_new = self._found.take(result.findings, step, since_ns, judged)
                is_other |= is_new or self._result is None
                is_other |= self._result is not None and self._result.lacking != result.lacking
                self._result = result
            self._status = replace(
                self._status,
                revision=self._status.revision + int(is_other),
                num_unchecked=self._num_unchecked,
                num_withdrawn=len(self._found.came) - len(self._found.findings),
                num_untold=self._found.num_untold,
                check_failed=failed,
            )

    def _told(self, result: CheckResult | None) -> CheckResult | None:
        """The result with all findings that came, not only those of the rows that are here."""
        if result is None:
            return None
        findings = self._found.findings
        counts = dict(result.counts)
        for code in {each.code for each in findings}:
            counts[code] = sum(each.count for each in findings if each.code == code)
        lacking = {code: what for code, what in result.lacking.items() if code not in counts}
        return replace(result, findings=findings, counts=counts, lacking=lacking)


def _with_lacking(result: CheckResult, codes: list[str]) -> CheckResult:
    """Say of rules that were not asked that they need all rows."""
    unasked = {code: (LACKS_OLDER,) for code in codes if code not in OF_A_PART}
    return replace(result, lacking={**result.lacking, **unasked})


def _of_a_part(manifest: Manifest, rows: RecentRows) -> Manifest:
    """What a manifest says of rows of which more may come, and some may be left out."""
    names = {name: "partial" for name, number in rows.num_rows.items() if number}
    said = {"rows": {}, "live": True, "discarded_bytes": 0, "notes": []}
    live = {str(rank): said for rank in manifest.ranks}
    return replace(manifest, closed=False, tables=names, recovered=live)


def _last_step(came: Recorded, known: int | None) -> int | None:
    """The highest step of any row so far."""
    frames = [
        each for kind in (came.rows, came.unfinished) for found in kind.values() for each in found
    ]
    highest = pl.Series([each["step"].max() for each in frames], dtype=pl.Int64).max()
    return max((each for each in (highest, known) if isinstance(each, int)), default=None)
