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
slot      release: id  3 | task 0 | stop processing: n_tokens = 220, truncated = 0

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
UNKNOWN_START = "llama.cpp prompts of which the log does not say where they went on"
NOT_RELEASED = "llama.cpp slots taken again without a line that they were left"
ONLY_PROMPTS = "llama.cpp writes a line for batches with prompts in them, not for decodes alone"
LIMIT_TASKS = 65_536
_SLOT = re.compile(r"\bslot +\w{1,32}: +id +(\d{1,6}) +\| +task +(-?\d{1,15}) +\| +(\S.*)")
_TIMED = re.compile(r"\bslot +print_timing: +id +(\d{1,6}) +\| +task +-?\d{1,15} +\|\s*$")
_EVAL = re.compile(
    r"\b((?:prompt )?eval) time = +(\d{1,12}\.\d{1,6}) ms / +(\d{1,12}) (?:tokens|runs) +"
    r"\(.{0,64}, +(\d{1,12}\.\d{1,6}) tokens per second\)"
)
_REMOVED = re.compile(r"(?:memory_seq_rm|kv cache rm) \[(\d{1,15}), end\)")


@dataclass(slots=True)
class _Task:
    """What is known of a request: tokens of its prompt, and how many of them were computed."""

    prompt_len: int | None = None
    computed: int | None = None


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


class LlamacppLines:
    """Reads batches with prompts as steps, slots as allocations, timings as counters."""

    name = "llama.cpp"
    markers = (
        "| processing task", "| new prompt, ", "memory_seq_rm [", "kv cache rm [",
        "| prompt processing", "| prompt done", "| n_decoded = ", "| stop processing",
        "slot print_timing: id ", "eval time = ",
    )  # fmt: skip

    def __init__(self) -> None:
        self._servers: dict[str, tuple[Source, _Server]] = {}
        self._timed: dict[str, str] = {}

    def take(self, line: Line, rows: LogRows) -> str | None:
        """Read what a slot does."""
        match = _SLOT.search(line.text)
        if not match:
            return self._evaluated(line, rows)
        source = rows.source(self.name, line)
        _, server = self._servers.setdefault(source.name, (source, _Server()))
        slot, task, text = int(match[1]), int(match[2]), match[3]
        said = fields(text, " = ", is_whole=line.is_whole)
        if text.startswith(("prompt processing progress", "prompt processing done", "prompt done")):
            return _prompt((slot, task), text, source, server, line, rows)
        if text.startswith(("prompt processing, ", "n_decoded")):
            return _timing(slot, said, source, line, rows)
        if text.startswith(("processing task", "stop processing")):
            taken = text.startswith("processing")
            return _slot((slot, task), said, source, server, line, rows, is_taken=taken)
        return _told(_task(server, task), text, said)

    def _evaluated(self, line: Line, rows: LogRows) -> str | None:
        """How long a request took: a line that names its slot, then some that do not."""
        if timed := _TIMED.search(line.text):
            self._timed[line.origin] = f"slot {int(timed[1])}"
            return TIMINGS
        if not (match := _EVAL.search(line.text)):
            return None
        what, source = match[1], rows.source(self.name, line)
        numbers = {
            f"{what} time": Number(float(match[2]), "ms"),
            f"{what} tokens": Number(float(match[3]), None),
            f"{what} tokens per second": Number(float(match[4]), None),
        }
        track = self._timed.get(line.origin, "")
        rows.counters(source, rows.time(source, line).ns, numbers, track=track)
        return TIMINGS

    def end(self, rows: LogRows) -> None:
        """Add the batches that were still open."""
        for source, server in self._servers.values():
            _close(source, server, rows)


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
    ts_ns = rows.time(source, line).ns
    if not is_taken:
        _close(source, server, rows)
    known = server.tasks.pop(task, None)
    held = server.slots.pop(slot, None)
    if held is not None and (is_taken or held != task):
        rows.repaired[NOT_RELEASED] += 1
        _allocate(source, ts_ns, slot, "release", held, rows)
    if is_taken:
        server.slots[slot] = task
    _allocate(source, ts_ns, slot, "claim" if is_taken else "release", task, rows)
    rows.add(
        "lifecycle",
        source,
        ts_ns,
        request=_name(task),
        event="admit" if is_taken else "finish",
        num_generated=None if is_taken else _generated(known, said),
    )
    return SLOTS


def _generated(task: _Task | None, said: dict[str, str]) -> int | None:
    """Tokens generated: those in the slot beyond the prompt, and the last one, which never got in.

    None where a line of them is missing, or is of a version that calls them otherwise.
    """
    total = _int(said.get("stop processing: n_tokens"))
    if total is None or task is None or task.prompt_len is None or total < task.prompt_len:
        return None
    return total - task.prompt_len + 1


def _allocate(source: Source, ts_ns: int, slot: int, op: str, task: int, rows: LogRows) -> None:
    rows.add("allocations", source, ts_ns, resource="slot", id=slot, op=op, owner=_name(task))


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
        _row(row, chunk, step, begins, source, rows)
    server.chunks, server.num_tokens, server.begun = [], 0, None


def _row(row: int, chunk: _Chunk, step: int, begins: int, source: Source, rows: LogRows) -> None:
    if chunk.num_tokens is None:
        rows.skipped[UNKNOWN_START] += 1
        return
    rows.add(
        "batch_rows",
        source,
        begins,
        step=step,
        row=row,
        request=_name(chunk.task),
        phase="prefill",
        slot=chunk.slot,
        num_tokens=chunk.num_tokens,
        num_computed=chunk.before,
        prompt_len=chunk.prompt_len,
        is_final_chunk=chunk.is_final,
    )


def _name(task: int) -> str:
    return f"task {task}"


def _int(text: str | None) -> int | None:
    found = number(text) if text else None
    return found.count if found else None
