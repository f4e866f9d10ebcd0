"""Decode lines of the core-group runtime's own log, and collect them by kind.

[mono_ns=2408587416162][T0x7f3f][TIMING] emit_host_span: [STRACE] v=1 pid=5006 tid=5006 inv=1 hid=0
    depth=2 name=chip.run.bind.args ts=2408587410594 dur=3825
[DEBUG] prepare_subtask_to_core: [scheduler_dispatch.cpp:205] Thread 0: Dispatched idle aiv0 task
    4294967299 kernel_id=[-1,3,4] block_idx=0/total_blocks=1 to core_offset=4 core_id=14 ...
[INFO] log_stall_diagnostics: [...] [STALL thread=0 idle_iterations=9] TASK ring=0 task_id=0
    state=WAIT fanin_refcount=1/2 kernels=[aic:0 aiv0:1 aiv1:2] missing_deps=1
[INFO] log_stall_diagnostics: [...] [STALL thread=0 idle_iterations=9] CLUSTER cluster_id=0
    aic=core0(busy kernel=11 task=9 cond_reg_state=ack) aiv0=core8(idle) aiv1=core9(idle)
[ERROR] validate_runtime_impl: [...] PTO2 scheduler timeout sub_class=S1:running-stalled (detail=1)
    completed=307/311 running=1 ready=0 waiting=3 orch_done=1 stuck_task_id=42 stuck_core=26

Lines of the host have a time (`mono_ns`); those of the device look the same without it. So each row
has the number of its line, and `Places` gives lines without a time a place between the others.

The format: hw-native-sys/simpler, `tensormap_and_ringbuffer` runtime.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stepscope.ingest.errors import LimitExceeded
from stepscope.ingest.limits import DEFAULTS, raised_by
from stepscope.ingest.readers.core_runtime.runs import Places, Run

LIMIT_CHARS = 1_024
LAST_NUMBER = 2**63 - 1

SPANS, DISPATCHES, STALLS, MESSAGES, TIMINGS, ANCHORS = (
    "host spans", "dispatches", "lines of stall reports", "messages", "host timings",
    "clock anchors",
)  # fmt: skip
OTHER, MALFORMED = (
    "lines that are not the runtime's",
    "lines of the runtime that do not read as any known",
)
MARKERS = (
    b"[STRACE] v=", b"[CLOCK_ANCHOR] v=", b"[STALL thread=", b": PTO2 dispatch starting",
    b": Dispatched idle ", b": Dispatched pending ", b"PTO2 runtime failed",
    b"runtime failed: orch_error_code=", b"scheduler timeout sub_class=",
)  # fmt: skip

_HEAD = re.compile(r"\[mono_ns=(\d{1,18})\]\[T0x[0-9a-f]{1,16}\]\[([A-Z]{4,8})\] (.*)")
_BARE = re.compile(r"\[(TIMING|DEBUG|INFO|WARN|ERROR|FATAL)\] (.*)")
_BODY = re.compile(r"([\w()~:<>]{1,128}): (?:\[[\w.-]{1,128}:\d{1,6}\] ?)?(.*)")
_SPAN = re.compile(
    r"\[STRACE\] v=\d+ pid=(\d{1,9}) tid=(\d{1,9}) inv=(\d{1,9}) hid=(\d{1,18}) depth=(\d{1,4}) "
    r"name=(\S{1,256}) ts=(\d{1,18}) dur=(\d{1,18})(?!\d)"
)
_ANCHOR = re.compile(r"\[CLOCK_ANCHOR\] v=\d+ pid=\d+ mono_ns=(\d{1,18}) wall_ns=(\d{1,19})\b")
_TIMING = re.compile(r"TIMING: (\w{1,64}) = (\d{1,12}(?:\.\d{1,6})?)(ms|us|s)\b")
_STARTS = re.compile(r"Thread (\d{1,4}): PTO2 dispatch starting with (\d{1,6}) cores")
_CORES = re.compile(r"(?:Handshaking with|Launching) (\d{1,6}) (?:cores|AICore)")
_ENDS = re.compile(r"Thread \d{1,4}: PTO2 completed tasks (\d{1,9})/(\d{1,9})\b")
_DISPATCH = re.compile(
    r"Thread (\d{1,4}): Dispatched (idle|pending) (aic|aiv0|aiv1) task (\d{1,19}) "
    r"kernel_id=\[(-?\d{1,9}),(-?\d{1,9}),(-?\d{1,9})\] "
    r"block_idx=(\d{1,9})/total_blocks=(\d{1,9}) to "
    r"core_offset=(\d{1,6}) core_id=(\d{1,6})\b"
)
_STALL = re.compile(r"\[STALL thread=(\d{1,4}) idle_iterations=\d+\] ([A-Z_]+) (.*)")
_TASK = re.compile(
    r"ring=\d{1,4} task_id=(\d{1,19}) state=([A-Z]{1,16}) +fanin_refcount=(\d{1,9})/(\d{1,9}) "
    r"kernels=\[aic:(-?\d{1,9}) aiv0:(-?\d{1,9}) aiv1:(-?\d{1,9})\]"
)
_ON_CORE = re.compile(r"\bcore=(\d{1,6})\((aic|aiv0|aiv1)\)")
_CLUSTER = re.compile(r"cluster_id=(\d{1,6}) ")
_CORE = re.compile(r"\b(aic|aiv0|aiv1)=core(\d{1,6})\((idle|busy kernel=-?\d+ task=(\d{1,19}))\b")
_NUMBERS = re.compile(r"\b(\w{1,64})=(\d{1,12})(?:/(\d{1,12}))?(?![\w:])")
_CLASS = re.compile(r"\bsub_class=(\S{1,64})")
_RINGS = re.compile(r"Ring buffer sizes: (.*)")
_SIZE = re.compile(r"[0-9]{1,19}")
_SIZES = re.compile(r"(\w{1,32})=\[([\d, ]{1,512})\]")
_DEADLOCK = re.compile(r"Scope Deadlock Detected! \(ring (\d{1,4})\)")
_FULL = re.compile(r"Tasks in current scope \((\d{1,9})\) >= task_window_size \((\d{1,9})\)")
_GIVEN = re.compile(r"\[Orchestrator\] ring (\d{1,4}): total_tasks=(\d{1,9})\b")
_FAILED = re.compile(r"error detail: \w+=-?\d+ ([A-Z][A-Z_]{1,63})\b")
_CODES = re.compile(r"runtime failed: orch_error_code=(\d{1,9}) sched_error_code=(\d{1,9})\b")
_SIGNED = re.compile(r"\b(\w{1,64})=(-?\d{1,19})(?:/(\d{1,9}))?(?![\w:])")
ERRORS = {
    1: "SCOPE_DEADLOCK", 2: "HEAP_RING_DEADLOCK", 3: "FLOW_CONTROL_DEADLOCK",
    4: "DEP_POOL_OVERFLOW", 5: "INVALID_ARGS", 7: "REQUIRE_SYNC_START_INVALID",
    8: "TENSOR_WAIT_TIMEOUT", 9: "EXPLICIT_ORCH_FATAL", 10: "SCOPE_TASKS_OVERFLOW",
    11: "TENSORMAP_OVERFLOW", 100: "SCHEDULER_TIMEOUT", 101: "ASYNC_COMPLETION_INVALID",
    102: "ASYNC_WAIT_OVERFLOW", 103: "ASYNC_REGISTRATION_FAILED", 104: "READY_QUEUE_OVERFLOW",
}  # fmt: skip
"""What the host's codes stand for: up to 99 the orchestrator's, then the scheduler's."""
RUN_SPAN = "chip.run.runner_run"


@dataclass(slots=True)
class RuntimeLog:
    """What a log says, by kind; rows begin with their run and line, spans with their time."""

    limit_rows: int = DEFAULTS.rows
    read: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    places: Places = field(default_factory=Places)
    runs: list[Run] = field(default_factory=lambda: [Run()])
    spans: list[tuple[Any, ...]] = field(default_factory=list)
    messages: list[tuple[Any, ...]] = field(default_factory=list)
    dispatches: list[tuple[Any, ...]] = field(default_factory=list)
    tasks: list[tuple[Any, ...]] = field(default_factory=list)
    running: list[tuple[Any, ...]] = field(default_factory=list)
    idle: list[tuple[Any, ...]] = field(default_factory=list)
    clusters: dict[int, tuple[str, int]] = field(default_factory=dict)
    counters: list[tuple[Any, ...]] = field(default_factory=list)
    rings: dict[str, list[int]] = field(default_factory=dict)
    epoch_ns: int = 0
    num_untimed: int = 0
    _line: int = -1
    _ring: int | None = None

    def take(self, text: str) -> str | None:
        """Read a line; gives its kind, None where it is not the runtime's."""
        self._line += 1
        if self._line >= self.limit_rows:
            raise LimitExceeded(f"more than {self.limit_rows:,} lines", todo=raised_by("rows"))
        timed = _HEAD.search(text, 0, LIMIT_CHARS * 8)
        bare = timed or _BARE.search(text, 0, LIMIT_CHARS * 8)
        if not bare:
            self.skipped[OTHER] += 1
            return None
        level, said = bare.groups()[-2:]
        kind = self._span(said) if "[STRACE]" in said else None
        if timed:
            self.places.mark(self._line, int(timed[1]))
        else:
            self.num_untimed += 1
        kind = kind or self._kind(said, level, "host" if timed else "device")
        (self.read if kind != MALFORMED else self.skipped)[kind] += 1
        return kind

    @property
    def run(self) -> Run:
        """The run that lines are about."""
        return self.runs[-1]

    def _kind(self, said: str, level: str, side: str) -> str:
        for mark, read in _READS:
            if mark in said:
                return read(self, said)
        for mark, note in _NOTES:
            if mark in said:
                note(self, said)
        body = _BODY.match(said)
        text = f"{body[1]}: {body[2]}" if body else said
        self.messages.append((self._line, side, level, text.strip()[:LIMIT_CHARS]))
        return MESSAGES

    # -- the host's ----------------------------------------------------------------------------

    def _span(self, said: str) -> str:
        match = _SPAN.search(said)
        if not match:
            return MALFORMED
        pid, tid, inv, hid, depth = map(int, match.groups()[:5])
        name, ts_ns, dur_ns = match[6], int(match[7]), int(match[8])
        self.spans.append((ts_ns, dur_ns, name, pid, tid, inv, hid, depth))
        if name == RUN_SPAN:
            self.places.lift(self._line, ts_ns)
            self._within_run(needs_open=True).span = ts_ns, dur_ns
        return SPANS

    def _anchor(self, said: str) -> str:
        if not (match := _ANCHOR.search(said)):
            return MALFORMED
        self.epoch_ns = self.epoch_ns or max(0, int(match[2]) - int(match[1]))
        return ANCHORS

    def _timing(self, said: str) -> str:
        if not (match := _TIMING.search(said)):
            return MALFORMED
        self.counters.append((self._line, "host timings", match[1], match[3], float(match[2])))
        return TIMINGS

    # -- the device's --------------------------------------------------------------------------

    def _within_run(self, *, needs_open: bool = False) -> Run:
        """The current run; a new one where the last is over."""
        if needs_open and self.run.span:
            self.runs.append(Run())
        if self.run.first_line is None:
            self.run.first_line = self._line
        return self.run

    def _starts(self, said: str) -> None:
        if not (match := _STARTS.search(said)):
            return
        thread = int(match[1])
        if thread in self.run.threads:
            self.runs.append(Run())
        self._within_run(needs_open=True).threads[thread] = int(match[2])

    def _cores(self, said: str) -> None:
        if match := _CORES.search(said):
            self._within_run(needs_open=True).num_cores = int(match[1])

    def _ends(self, said: str) -> None:
        if match := _ENDS.search(said):
            self.run.completed = int(match[1]), int(match[2])
            self.run.finish_line = self._line

    def _dispatch(self, said: str) -> str:
        match = _DISPATCH.search(said)
        if not match or int(match[4]) > LAST_NUMBER:
            return MALFORMED
        self._within_run(needs_open=True)
        thread, slot, part, task, *rest = match.groups()
        numbers = [int(number) for number in rest]
        place = "running" if slot == "idle" else "pending"
        row = (len(self.runs) - 1, self._line, int(thread), place, part.upper(), int(task))
        self.dispatches.append((*row, numbers[:3], *numbers[3:]))
        return DISPATCHES

    # -- of what went wrong --------------------------------------------------------------------

    def _stall(self, said: str) -> str:
        match = _STALL.search(said)
        if not match:
            return MALFORMED
        thread, what, rest = match.groups()
        run = self._within_run()
        if run.report_line is None:
            run.report_line = self._line
        if found := _CLASS.search(rest):
            run.stall_class = found[1]
        if what == "TASK":
            return self._task(rest)
        if what == "CLUSTER":
            return self._cluster(rest)
        for name, value, _ in _NUMBERS.findall(rest):
            self.counters.append((self._line, f"stall, thread {thread}", name, None, float(value)))
        if "sub_class" in rest and (found := re.search(r"completed=(\d{1,9})/(\d{1,9})\b", rest)):
            run.completed = int(found[1]), int(found[2])
        return STALLS

    def _task(self, said: str) -> str:
        match = _TASK.match(said)
        if not match or int(match[1]) > LAST_NUMBER:
            return MALFORMED
        task, state, have, need, *kernels = match.groups()
        number, run = len(self.runs) - 1, int(task)
        self.tasks.append(
            (number, self._line, run, state, int(have), int(need), [int(k) for k in kernels])
        )
        for core, part in _ON_CORE.findall(said):
            self.running.append((number, self._line, int(core), run, part.upper()))
        return STALLS

    def _cluster(self, said: str) -> str:
        match, cores = _CLUSTER.match(said), _CORE.findall(said)
        if not match or not cores:
            return MALFORMED
        for part, core, _, task in cores:
            self.clusters[int(core)] = part.upper(), int(match[1])
            number = len(self.runs) - 1
            if not task:
                self.idle.append((number, self._line, int(core)))
            elif int(task) <= LAST_NUMBER:
                self.running.append((number, self._line, int(core), int(task), part.upper()))
        return STALLS

    def _failed(self, said: str) -> None:
        if match := _FAILED.search(said):
            self.run.failure, self.run.failure_line = match[1], self._line

    def _codes(self, said: str) -> None:
        """The host's verdict on a run, of which the next such line is of another run."""
        if not (match := _CODES.search(said)):
            return
        if self.run.is_judged:
            self.runs.append(Run())
        code = int(match[1]) or int(match[2])
        run = self._within_run()
        run.is_judged = True
        run.failure = run.failure or ERRORS.get(code, f"error {code}")
        run.failure_line = self._line if run.failure_line is None else run.failure_line

    def _timeout(self, said: str) -> str:
        """What the host says of a stall: its class, how far the run came, and what is stuck where.

        Where the device's own report names the task as well, that has more of it.
        """
        found = _CLASS.search(said)
        if not found:
            return MALFORMED
        numbers = {name: (int(value), of) for name, value, of in _SIGNED.findall(said)}
        if self.run.is_timed_out:
            self.runs.append(Run())
        run = self._within_run()
        run.is_judged = run.is_timed_out = True
        run.report_line = self._line if run.report_line is None else run.report_line
        run.stall_class = found[1]
        run.failure = run.failure or ERRORS[100]
        for name, (value, of) in numbers.items():
            if name == "completed" and of:
                run.completed = value, int(of)
            elif name in ("running", "ready", "waiting"):
                run.left[f"tasks {name}"] = value
        task, core = (numbers.get(name, (-1, ""))[0] for name in ("stuck_task_id", "stuck_core"))
        if 0 <= task <= LAST_NUMBER:
            run.stuck = self._line, task, core if 0 <= core < 1 << 31 else None
        return STALLS

    def _sizes(self, said: str) -> None:
        if match := _RINGS.search(said):
            for name, sizes in _SIZES.findall(match[1]):
                self.rings[name] = [int(size) for size in _SIZE.findall(sizes)][:64]

    def _given(self, said: str) -> None:
        if match := _GIVEN.search(said):
            self.run.given[int(match[1])] = int(match[2])

    def _deadlock(self, said: str) -> None:
        if match := _DEADLOCK.search(said):
            self._ring = int(match[1])
        elif (match := _FULL.search(said)) and self._ring is not None:
            ring, num_tasks, window = self._ring, int(match[1]), int(match[2])
            self._within_run(needs_open=True).full = self._line, ring, num_tasks, window
            for name, value in (("tasks of the scope", num_tasks), ("task_window size", window)):
                self.counters.append((self._line, f"ring {ring}", name, "tasks", float(value)))


# Lines that become rows of their own, and those of which something is noted beside the message.
_READS: tuple[tuple[str, Callable[[RuntimeLog, str], str]], ...] = (
    (": Dispatched ", RuntimeLog._dispatch),
    ("[STALL thread=", RuntimeLog._stall),
    ("scheduler timeout sub_class=", RuntimeLog._timeout),
    ("[CLOCK_ANCHOR]", RuntimeLog._anchor),
    ("TIMING: ", RuntimeLog._timing),
)
_NOTES: tuple[tuple[str, Callable[[RuntimeLog, str], None]], ...] = (
    ("PTO2 dispatch starting", RuntimeLog._starts),
    ("PTO2 completed tasks", RuntimeLog._ends),
    ("Handshaking with", RuntimeLog._cores),
    ("Launching ", RuntimeLog._cores),
    ("error detail: ", RuntimeLog._failed),
    ("runtime failed: orch_error_code=", RuntimeLog._codes),
    ("Ring buffer sizes: ", RuntimeLog._sizes),
    ("[Orchestrator] ring ", RuntimeLog._given),
    ("Scope Deadlock Detected!", RuntimeLog._deadlock),
    ("Tasks in current scope ", RuntimeLog._deadlock),
)
