"""What the page looks at: one trace for good, or a recording that goes on, read anew when asked."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.summary.slo import Slo
from stepscope.app.live.follower import Follower, Status
from stepscope.app.live.found_so_far import Came
from stepscope.app.live.on_disk import OnDisk, begun_since
from stepscope.app.live.words import CHANGED, VANISHED, Following, begun, line, short
from stepscope.app.present.blocks import Tone
from stepscope.app.printable import plain
from stepscope.app.timeline.flags.flag_at import FlagsOnLanes
from stepscope.app.web.loaded import LoadedTrace
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.live.growing_trace import RecordingState
from stepscope.ingest.progress import Progress
from stepscope.ingest.trace import Trace

MOST_KEPT = 3
"""Revisions that a page may still ask about: it gets the next only when it asks for it."""
Json = dict[str, Any]


class Source:
    """Gives what is looked at by its revision; any thread may ask, and nothing is done unasked.

    A `follower` follows a recording; `reopen` opens anew what lies on the disk.
    `keeps_queries` is whether queries are the user's own, whom the page is for alone, and
    `opens_others` whether there is a page beside it from which another trace is opened. Where
    `loaded` was not checked its rules run from when a page first asks for news, and what they find
    is the next revision.
    """

    def __init__(
        self,
        loaded: LoadedTrace,
        follower: Follower | None = None,
        reopen: Callable[[Path], Trace] = Trace.open,
        slo: Slo | None = None,
        *,
        keeps_queries: bool = True,
        opens_others: bool = False,
    ) -> None:
        self.follower = follower
        self.opens_others = opens_others
        self._keeps_queries = loaded.keeps_queries = keeps_queries
        self._reopen, self._slo = reopen, slo
        self._on_disk = OnDisk(loaded.trace.path) if loaded.trace.path else None
        self._lock = Lock()
        self._kept = OrderedDict({loaded.revision: loaded})
        self._failed = ""
        self._checking: Thread | None = None
        self._rule = ""

    @property
    def now(self) -> LoadedTrace:
        """What is newest."""
        return next(reversed(self._kept.values()))

    def at(self, revision: object) -> LoadedTrace:
        """What a page looks at that has a revision: the newest, where that is not kept any more."""
        known = isinstance(revision, int) and self._kept.get(revision)
        return known or self.now

    def with_findings(self, revision: object) -> LoadedTrace:
        """The same, once its rules have run: who asks for a finding waits for them."""
        self._begin_check()
        if self._checking and self.at(revision).is_being_checked:
            self._checking.join()
            return self.now
        return self.at(revision)

    def asked_for(self, asked: Json) -> LoadedTrace:
        """What a page asks for: all that lies on the disk, or what was recorded by now."""
        return self.reload() if asked["reload"] else self.renew()

    def renew(self) -> LoadedTrace:
        """Lay out what was recorded and found by now."""
        with self._lock:
            if self.follower:
                look = self.follower.look()
                if look.status.revision > self.now.revision:
                    result = look.result or check(look.trace)
                    self._keep(LoadedTrace(look.trace, result, self._slo, (look.status, look.came)))
            return self.now

    def reload(self) -> LoadedTrace:
        """Open what lies on the disk by now; where that fails the next news say why."""
        with self._lock:
            path = self.now.trace.path
            try:
                if path is not None:
                    trace = self._reopen(path)
                    loaded = LoadedTrace(trace, check(trace), self._slo)
                    loaded.revision = self.now.revision + 1
                    self.follower, self._on_disk, self._failed = None, OnDisk(path), ""
                    self._keep(loaded)
            except StepscopeError as error:
                self._failed = str(error)
            return self.now

    def news(self, following: Following) -> Json:
        """The revision that can be had, and the line that tells how it goes on."""
        if self.follower is None:
            self._begin_check()
            said = self._failed or self._on_the_disk()
            told = [(said, Tone.WARNING)] if said else []
            return _news(self.now.revision, told, is_live=False, checking=self._rule)
        try:
            status = self.follower.refresh()
        except OSError as error:
            said = f"cannot be read: {error.strerror or error}"
            return _news(self.now.revision, [(said, Tone.ERROR)], is_live=True)
        return _news(status.revision, self._told(status, following), is_live=True)

    def _begin_check(self) -> None:
        if self._checking or not self.now.is_being_checked:
            return
        with self._lock:
            if self._checking is None:
                self._checking = Thread(target=self._check, args=(self.now,), daemon=True)
                self._checking.start()

    def _check(self, loaded: LoadedTrace) -> None:
        checked = loaded.checked(_found(loaded.trace, self._tell_rule))
        with self._lock:
            if self.now is loaded:
                self._keep(checked)
        self._rule = ""

    def _tell_rule(self, rule: str, done: int, total: int | None) -> None:
        self._rule = f"{done:,} of {total:,} rules" if total else rule

    def _told(self, status: Status, following: Following) -> list[tuple[str, Tone]]:
        said = line(status, following)
        if self._failed:
            said.append((self._failed, Tone.ERROR))
        live = self.now.live
        if found := short(live[1]) if live else "":
            said.append((found, Tone.WARNING))
        if self.follower and status.state is not RecordingState.RECORDING:
            later = begun_since(self.follower.path)
            said += [(begun(later, "web"), Tone.WARNING)] if later else []
        return said

    def _on_the_disk(self) -> str:
        if self._on_disk is None or not (self._on_disk.has_changed or self._on_disk.is_gone):
            return ""
        return VANISHED if self._on_disk.is_gone else CHANGED

    def _keep(self, loaded: LoadedTrace) -> None:
        loaded.keeps_queries = self._keeps_queries
        loaded.flags = FlagsOnLanes(self.now.flags.flags, loaded.timeline.lanes)
        self._kept[loaded.revision] = loaded
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


def followed(follower: Follower, slo: Slo | None = None) -> LoadedTrace:
    """What there is of a recording at first, once it was checked."""
    follower.refresh()
    follower.wait_for_check()
    look = follower.look()
    told: tuple[Status, tuple[Came, ...]] = look.status, look.came
    return LoadedTrace(look.trace, look.result or check(look.trace), slo, told)


def _found(trace: Trace, told: Progress) -> CheckResult | StepscopeError:
    """What the rules find, or why they cannot run."""
    try:
        return check(trace, progress=told)
    except StepscopeError as error:
        return error
    except Exception as error:
        # Nobody reads a traceback in the server's log; the page says what happened.
        what = f"cannot check the trace: {type(error).__name__}: {error}"
        return StepscopeError(what, where=trace.name, todo="report this as a bug")


def _news(
    revision: int, said: list[tuple[str, Tone]], *, is_live: bool, checking: str = ""
) -> Json:
    told = [[plain(text), str(tone)] for text, tone in said]
    return {"revision": revision, "told": told, "live": is_live, "checking": checking}
