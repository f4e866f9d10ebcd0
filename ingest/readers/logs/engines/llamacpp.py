"""Lines of llama.cpp's server: what its slots do.

slot launch_slot_: id  3 | task 0 | processing task, is_child = 0
slot update_slots: id  3 | task 0 | new prompt, n_ctx_slot = 65536, n_keep = 0, task.n_tokens = 133
slot update_slots: id  3 | task 0 | n_tokens = 0, memory_seq_rm [0, end)
slot update_slots: id  3 | task 0 | prompt processing progress, n_tokens = 129, batch.n_tokens =
    129, progress = 0.969925
slot update_slots: id  3 | task 0 | prompt processing done, n_tokens = 133, batch.n_tokens = 4
slot print_timing: id  3 | task 0 | prompt processing, n_tokens = 4096, progress = 0.47, t =
    3.61 s / 1133.55 tokens per second
slot print_timing: id  3 | task 0 | n_decoded = 508, tg = 2.53 t/s, tg_3s = 2.53 t/s
slot print_timing: id  3 | task 0 |
prompt eval time =      75.60 ms /    12 tokens (    6.30 ms per token,   158.73 tokens per second)
       eval time =    3000.00 ms /    88 tokens (   34.09 ms per token,    29.33 tokens per second)
      total time =    3075.60 ms /   100 tokens
slot      release: id  3 | task 0 | stop processing: n_tokens = 220, truncated = 0

In 2026 each of the three times follows `slot print_timing: id  3 | task 0 |` on one line.

The stated time of a prompt is that of its steps: they last until the next of its lines, and the
last one for what is left. Where the lines fit better as what was written when a step ended, they
are. A step that no time is stated of has ended when a slot is left, or all are idle.

A request's first token is its end less its eval time. In a log without times rows are in the order
of the lines; what the log states of a request are counters of its slot, from which
`ingest/derive/stated_times.py` takes it. A server that starts again counts its time and its tasks
from 0: tasks of later starts have the number of the start in their name.

`n_tokens` counts a slot's tokens, `batch.n_tokens` those of the batch so far, in which the decodes
of other slots come first. So lines are of one batch while the second grows and slots don't repeat,
and what is in it beside prompts are decodes. A batch of decodes alone has no line.

The format: llama.cpp, `tools/server/server-context.cpp`; older ones say `n_past` for `n_tokens` and
`n_tokens` for `batch.n_tokens`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stepscope.ingest.derive.step_tags import kind_of
from stepscope.ingest.readers.text.collect import Line, LogRows, Source
from stepscope.ingest.readers.text.fields import Number, fields, number, samples
from stepscope.ingest.readers.text.times import Stamp

PROMPTS = "llama.cpp prompt lines"
TIMINGS, SLOTS = "llama.cpp timing lines", "llama.cpp slot lines"
FIRST_TOKENS = "first tokens of llama.cpp requests, the eval time before their end"
UNKNOWN_START = "llama.cpp prompts of which the log does not say where they went on"
NOT_RELEASED = "llama.cpp slots taken again without a line that they were left"
ONLY_PROMPTS = "llama.cpp writes a line for batches with prompts in them, not for decodes alone"
STARTED_AGAIN = (
    "the server started again: its tasks of a later start have the number of the start in their "
    "name"
)
LIMIT_TASKS = 65_536
_IDLE = re.compile(r"\bupdate_slots: +all slots are idle\b")
_SLOT = re.compile(r"\bslot +[\w()]{1,32}: +id +(\d{1,6}) +\| +task +(-?\d{1,15}) +\| +(\S.*)")
_TIMED = re.compile(r"\bslot +print_timing: +id +(\d{1,6}) +\| +task +(-?\d{1,15}) +\|\s*$")
_TIME = re.compile(
    r"\b(prompt eval|eval|total) time = +(\d{1,12}\.\d{1,6}) ms / +(\d{1,12}) (?:tokens|runs)"
    r"(?: +\(.{0,64}, +(\d{1,12}\.\d{1,6}) tokens per second\))?"
)
_CHUNK = re.compile(
    r"prompt processing, n_tokens = +(\d{1,15}),.{0,64} t = +(\d{1,9}\.\d{1,6}) s\b"
)
_LOADED = re.compile(r"\bmodel loaded\s*$")
_REMOVED = re.compile(r"(?:memory_seq_rm|kv cache rm) \[(\d{1,15}), end\)")


@dataclass(slots=True)
class _Task:
    """A request: tokens of its prompt, how many of them were computed, and its stated times.

    `times_ns` has "prompt eval", "eval" and "total" as the log states them.
    """

    prompt_len: int | None = None
    computed: int | None = None
    admitted_ns: int | None = None
    prompted_ns: int = 0
    has_chunks: bool = False
    times_ns: dict[str, int] = field(default_factory=dict)
    num_decoded: int | None = None
    """Tokens that the log states with its eval time."""
    steps: list[tuple[int, int]] = field(default_factory=list)
    """The steps that its prompt is in: their number, and when their line was written."""


@dataclass(slots=True)
class _Chunk:
    """A prompt's part in a batch."""

    slot: int
    task: int
    total: int
    before: int | None
    prompt_len: int | None
    is_final: bool

    @property
    def num_tokens(self) -> int | None:
        """Tokens of it in the batch, where it is known how many there were before."""
        known = self.before is not None and self.total >= self.before
        return self.total - self.before if known and self.before is not None else None


@dataclass(slots=True)
class _Server:
    """A server's tasks and slots, and the batch that its lines are about."""

    tasks: dict[int, _Task] = field(default_factory=dict)
    slots: dict[int, int] = field(default_factory=dict)
    chunks: list[_Chunk] = field(default_factory=list)
    num_tokens: int = 0
    begun: tuple[Line, Stamp] | None = None
    num_starts: int = 1
    ended: set[int] = field(default_factory=set)
    """Tasks of this start that left their slot."""

    def name(self, task: int) -> str:
        """The name of a task's request."""
        return f"task {task}" if self.num_starts == 1 else f"task {task} (start {self.num_starts})"


class LlamacppLines:
    """Reads batches with prompts as steps, slots as allocations, timings as counters."""

    name = "llama.cpp"
    markers = (
        "| processing task", "| new prompt, ", "memory_seq_rm [", "kv cache rm [",
        "| prompt processing", "| prompt done", "| n_decoded = ", "| stop processing",
        "slot print_timing: id ", " time = ", "model loaded", "all slots are idle",
    )  # fmt: skip

    def __init__(self) -> None:
        self._servers: dict[str, tuple[Source, _Server]] = {}
        self._timed: dict[str, tuple[int, int]] = {}

    def take(self, line: Line, rows: LogRows) -> str | None:
        """Read what a slot does."""
        if _LOADED.search(line.text):
            return self._started(line, rows)
        match = _SLOT.search(line.text)
        if not match:
            is_idle = _IDLE.search(line.text)
            return self._idle(line, rows) if is_idle else self._stated(line, rows)
        source, server = self._server(line, rows)
        slot, task, text = int(match[1]), int(match[2]), match[3]
        said = fields(text, " = ", is_whole=line.is_whole)
        if text.startswith(("prompt processing progress", "prompt processing done", "prompt done")):
            return _prompt((slot, task), text, source, server, line, rows)
        if text.startswith(("processing task", "stop processing")):
            taken = text.startswith("processing")
            return _slot((slot, task), said, source, server, line, rows, is_taken=taken)
        if text.startswith(("prompt processing, ", "n_decoded")) or _TIME.match(text):
            return self._timed_at((slot, task), text, said, line, rows)
        return _told(_task(server, task), text, said)

    def _timed_at(
        self, place: tuple[int, int], text: str, said: dict[str, str], line: Line, rows: LogRows
    ) -> str | None:
        """Read how far a request is, or how long it took."""
        source, server = self._server(line, rows)
        if time := _TIME.match(text):
            return _time(place, time, source, server, line, rows)
        if text.startswith("prompt processing, "):
            _chunk(place, text, source, server, line, rows)
        return _timing(place[0], said, source, line, rows)

    def _server(self, line: Line, rows: LogRows) -> tuple[Source, _Server]:
        source = rows.source(self.name, line)
        return self._servers.setdefault(source.name, (source, _Server()))

    def _started(self, line: Line, rows: LogRows) -> str:
        """A server loaded its model: requests of an earlier start are over."""
        source, server = self._server(line, rows)
        if server.ended or server.tasks or server.slots:
            _start_again(source, server, rows)
        rows.time(source, line)
        return SLOTS

    def _idle(self, line: Line, rows: LogRows) -> str:
        """No slot has a request: whatever step there was has ended."""
        source, server = self._server(line, rows)
        _close(source, server, rows)
        _is_over(source, rows.time(source, line), rows)
        return SLOTS

    def _stated(self, line: Line, rows: LogRows) -> str | None:
        """How long a request took: a line that names its slot, then some that do not."""
        if timed := _TIMED.search(line.text):
            self._timed[line.origin] = int(timed[1]), int(timed[2])
            return TIMINGS
        if not (match := _TIME.search(line.text)):
            return None
        source, server = self._server(line, rows)
        return _time(self._timed.get(line.origin), match, source, server, line, rows)

    def end(self, rows: LogRows) -> None:
        """Add the batches that were still open."""
        for source, server in self._servers.values():
            _close(source, server, rows)
            for task in server.tasks.values():
                _state_steps(task, None, source, rows)


def _is_over(source: Source, stamp: Stamp, rows: LogRows) -> None:
    if not stamp.is_placed:
        rows.over.append((source.rank, stamp.ns))


def _state_steps(task: _Task, ended_ns: int | None, source: Source, rows: LogRows) -> None:
    """Say how long the steps of a prompt took, from the time that the log states of it."""
    whole_ns = task.times_ns.get("prompt eval") or task.prompted_ns
    if not task.steps or not whole_ns:
        return
    begins = [at for _, at in task.steps]
    ends = [*begins[1:], begins[0] + whole_ns]
    decoded_ns = task.times_ns.get("eval")
    if len(begins) > 1 and ended_ns is not None and decoded_ns is not None:
        first_ns = ended_ns - decoded_ns
        from_ns = begins[-1] - whole_ns
        if abs(begins[0] - (first_ns - whole_ns)) > abs(first_ns - begins[-1]) and (
            from_ns <= begins[0]
        ):
            begins, ends = [from_ns, *begins[:-1]], begins
    for (step, _), begin, end in zip(task.steps, begins, ends, strict=True):
        if end >= begin:
            key = source.rank, step
            before = rows.stated.get(key, (begin, end - begin))
            rows.stated[key] = min(before, (begin, end - begin), key=lambda one: one[1])


def _start_again(source: Source, server: _Server, rows: LogRows) -> None:
    """Begin a new start of a server: what the one before left open never ended."""
    _close(source, server, rows)
    server.tasks.clear()
    server.slots.clear()
    server.ended.clear()
    server.num_starts += 1
    rows.notes[STARTED_AGAIN] = None


def _time(
    place: tuple[int, int] | None,
    match: re.Match[str],
    source: Source,
    server: _Server,
    line: Line,
    rows: LogRows,
) -> str:
    """A time that a request took, as the log states it."""
    what, ms, num, speed = match.groups()
    if place is not None and place[1] in server.tasks:
        task = server.tasks[place[1]]
        task.times_ns[what] = round(float(ms) * 1e6)
        task.num_decoded = int(num) if what == "eval" else task.num_decoded
    numbers = {f"{what} time": Number(float(ms), "ms"), f"{what} tokens": Number(float(num), None)}
    if speed is not None:
        numbers[f"{what} tokens per second"] = Number(float(speed), None)
    track = "" if place is None else f"slot {place[0]}"
    rows.counters(source, rows.time(source, line).ns, numbers, track=track)
    return TIMINGS


def _task(server: _Server, task: int) -> _Task:
    if task not in server.tasks and len(server.tasks) >= LIMIT_TASKS:
        del server.tasks[next(iter(server.tasks))]
    return server.tasks.setdefault(task, _Task())


def _told(task: _Task, text: str, said: dict[str, str]) -> str | None:
    """What is said of a prompt before it is computed: its length, and what is in the cache."""
    removed = _REMOVED.search(text)
    length = _int(said.get("task.n_tokens") or said.get("n_prompt_tokens"))
    if removed:
        task.computed = int(removed[1])
    elif length is not None:
        task.prompt_len = length
    return SLOTS if removed or length is not None else None


def _timing(
    slot: int, said: dict[str, str], source: Source, line: Line, rows: LogRows
) -> str | None:
    took, _, speed = said.pop("t", "").partition(" / ")
    numbers = samples({**said, "t": took, "tokens per second": speed.split(" ")[0]})
    if not numbers:
        return None
    rows.counters(source, rows.time(source, line).ns, numbers, track=f"slot {slot}")
    return TIMINGS


def _slot(
    place: tuple[int, int],
    said: dict[str, str],
    source: Source,
    server: _Server,
    line: Line,
    rows: LogRows,
    *,
    is_taken: bool,
) -> str:
    """A slot that a request gets or leaves."""
    slot, task = place
    if is_taken and task in server.ended:
        _start_again(source, server, rows)
    stamp = rows.time(source, line)
    if not is_taken:
        _close(source, server, rows)
    held = server.slots.pop(slot, None)
    if held is not None and (is_taken or held != task):
        rows.repaired[NOT_RELEASED] += 1
        server.tasks.pop(held, None)
        _allocate(source, stamp.ns, slot, "release", server.name(held), rows)
    if is_taken:
        server.slots[slot] = task
        server.tasks.pop(task, None)
        known = _task(server, task)
        known.admitted_ns = stamp.ns
        _allocate(source, stamp.ns, slot, "claim", server.name(task), rows)
        rows.add("lifecycle", source, stamp.ns, request=server.name(task), event="admit")
    else:
        _ended(place, said, source, server, stamp, rows)
    return SLOTS


def _ended(
    place: tuple[int, int],
    said: dict[str, str],
    source: Source,
    server: _Server,
    stamp: Stamp,
    rows: LogRows,
) -> None:
    """Add the end of a request, and its first token where the log states how long it decoded."""
    slot, task = place
    request, known = server.name(task), server.tasks.pop(task, None)
    ended_ns, admitted_ns = stamp.ns, None if known is None else known.admitted_ns
    server.ended.add(task)
    if not stamp.is_placed:
        _is_over(source, stamp, rows)
        if known is not None:
            _state_steps(known, ended_ns, source, rows)
    times_ns = {} if known is None else known.times_ns
    decoded_ns = None if stamp.is_placed else times_ns.get("eval")
    if decoded_ns is not None and admitted_ns is not None:
        first_ns = max(ended_ns - decoded_ns, admitted_ns)
        rows.add("lifecycle", source, first_ns, request=request, event="first-token")
        rows.inferred[FIRST_TOKENS] += 1
    _allocate(source, ended_ns, slot, "release", request, rows)
    num_generated = _generated(known, said)
    rows.add(
        "lifecycle", source, ended_ns, request=request, event="finish", num_generated=num_generated
    )


def _chunk(
    place: tuple[int, int],
    text: str,
    source: Source,
    server: _Server,
    line: Line,
    rows: LogRows,
) -> None:
    """Add the step of a prompt of which the log states only how far it is, and since how long."""
    slot, task = place
    known, match = _task(server, task), _CHUNK.match(text)
    if match is None:
        return
    total, prompted_ns = int(match[1]), round(float(match[2]) * 1e9)
    if known.has_chunks:
        known.prompted_ns = prompted_ns if total == known.computed else 0
        return
    before, dur_ns = known.computed or 0, prompted_ns - known.prompted_ns
    known.computed, known.prompted_ns = total, prompted_ns
    if total <= before or dur_ns < 0:
        return
    at = rows.time(source, line)
    step, begins = rows.step(
        source, line, inferred=PROMPTS, at=at, dur_ns=None if at.is_placed else dur_ns,
        is_end=True, kind=None,
        num_prefill_reqs=1, num_prefill_tokens=total - before,
    )  # fmt: skip
    rows.notes[ONLY_PROMPTS] = None
    chunk = _Chunk(slot, task, total, before, known.prompt_len, total == known.prompt_len)
    _row(0, chunk, step, begins, source, server, rows)


def _generated(task: _Task | None, said: dict[str, str]) -> int | None:
    """Tokens generated: those in the slot beyond the prompt, and the last one, which never got in.

    Where a line of them is missing, or is of a version that calls them otherwise, those that the
    log states with the eval time.
    """
    stated = None if task is None else task.num_decoded
    total = _int(said.get("stop processing: n_tokens"))
    if total is None or task is None or task.prompt_len is None or total < task.prompt_len:
        return stated
    return total - task.prompt_len + 1


def _allocate(source: Source, ts_ns: int, slot: int, op: str, request: str, rows: LogRows) -> None:
    rows.add("allocations", source, ts_ns, resource="slot", id=slot, op=op, owner=request)


def _prompt(
    place: tuple[int, int], text: str, source: Source, server: _Server, line: Line, rows: LogRows
) -> str | None:
    """A prompt's part in a batch: of the one before, or the first of the next."""
    said = fields(text.partition(", ")[2], " = ", is_whole=line.is_whole)
    total, batch = (
        (said.get("n_past"), said.get("n_tokens"))
        if "n_past" in said
        else (said.get("n_tokens"), said.get("batch.n_tokens"))
    )
    num_total, num_batch = _int(total), _int(batch)
    if num_total is None or num_batch is None:
        return None
    slot, task = place
    is_final = not text.startswith("prompt processing progress")
    again = next((chunk for chunk in server.chunks if chunk.slot == slot), None)
    if again and is_final and (again.total, server.num_tokens) == (num_total, num_batch):
        again.is_final = True
        return PROMPTS
    if again or num_batch <= server.num_tokens:
        _close(source, server, rows)
    if server.begun is None:
        server.begun = line, rows.time(source, line)
    known = _task(server, task)
    known.has_chunks = True
    is_alone = server.slots.keys() <= {slot} and not server.num_tokens
    if known.computed is None and is_alone and num_total == num_batch:
        known.computed = 0  # all that is in the slot is in this batch
    chunk = _Chunk(slot, task, num_total, known.computed, known.prompt_len, is_final)
    server.chunks.append(chunk)
    server.num_tokens, known.computed = num_batch, num_total
    return PROMPTS


def _close(source: Source, server: _Server, rows: LogRows) -> None:
    """Add the batch that is open, if there is one."""
    if server.begun is None:
        return
    line, at = server.begun
    parts = [chunk.num_tokens for chunk in server.chunks]
    prompts = sum(part for part in parts if part is not None)
    decodes = server.num_tokens - prompts if None not in parts else None
    step, begins = rows.step(
        source,
        line,
        inferred=PROMPTS,
        at=at,
        kind=kind_of(len(parts), max(decodes or 0, 0)),
        num_prefill_reqs=len(parts),
        num_prefill_tokens=prompts if decodes is not None and decodes >= 0 else None,
        num_decode_reqs=0 if decodes == 0 else None,
        num_decode_tokens=decodes if decodes is not None and decodes >= 0 else None,
    )
    rows.notes[ONLY_PROMPTS] = None
    for row, chunk in enumerate(server.chunks):
        if chunk.task in server.tasks and not at.is_placed:
            server.tasks[chunk.task].steps.append((step, begins))
        _row(row, chunk, step, begins, source, server, rows)
    server.chunks, server.num_tokens, server.begun = [], 0, None


def _row(
    row: int,
    chunk: _Chunk,
    step: int,
    begins: int,
    source: Source,
    server: _Server,
    rows: LogRows,
) -> None:
    if chunk.num_tokens is None:
        rows.skipped[UNKNOWN_START] += 1
        return
    rows.add(
        "batch_rows",
        source,
        begins,
        step=step,
        row=row,
        request=server.name(chunk.task),
        phase="prefill",
        slot=chunk.slot,
        num_tokens=chunk.num_tokens,
        num_computed=chunk.before,
        prompt_len=chunk.prompt_len,
        is_final_chunk=chunk.is_final,
    )


def _int(text: str | None) -> int | None:
    found = number(text) if text else None
    return found.count if found else None
