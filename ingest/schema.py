"""Every table of a trace: its columns, their types, units and meaning.

This is the one place where they are written. The recorder packs rows by it, the store and the
readers build frames by it, the docs are made from it. It imports the standard library only,
because the recorder runs inside other people's servers.

Every table starts with `rank`, `step`, `ts_ns`. Times are int64 nanoseconds on the clock that
the manifest names. Null means "not known" everywhere; zero means zero.
"""

from __future__ import annotations

from stepscope.ingest.columns import Column, Table, Type

FORMAT_VERSION = 1

STEP_KINDS = ("prefill", "decode", "mixed", "idle", "dummy")
PHASES = ("prefill", "decode")
LIFECYCLE_EVENTS = (
    "receive", "arrive", "ready", "admit", "first-token", "preempt", "resume", "defer", "reject",
    "finish", "abort", "error", "deliver",
)  # fmt: skip
VERDICTS = ("admitted", "chosen", "passed-over", "put-back", "deferred", "preempted", "rejected")
SUBJECTS = ("request", "bucket", "task")
NOT_READY = ("grammar", "remote-kv", "prefetch", "streaming-input", "stale-output", "last-token")
"""What blocks a request that is not ready itself, whatever room there is."""
WHAT_BLOCKS = (
    "kv-block", "kv-token", "slot", "slot-tokens", "seat", "token-budget", "encoder-budget", "lora",
    "queue", "bucket", "phase", *NOT_READY, "preemption", "pause", "dp-throttle", "selection",
    "core-group",
)  # fmt: skip
RESOURCES = ("kv-block", "slot", "kv-token")
ALLOCATION_OPS = ("claim", "release", "share", "move", "cache", "evict", "copy", "let-go")
ACCESS_OPS = ("read", "write", "copy", "record", "wait", "synchronize")
SHAPES = ("AIC", "AIV", "MIX", "DUMMY")
CORE_KINDS = ("AIC", "AIV0", "AIV1")
OUTCOMES = ("run", "skipped", "dummy", "pending")
CORE_SLOTS = ("running", "pending")
SPAN_FORMS = ("slice", "instant", "async", "unfinished")
FLOW_ENDS = ("start", "step", "finish")


def _int(name: str, meaning: str) -> Column:
    return Column(name, Type.I64, meaning)


def _small(name: str, meaning: str) -> Column:
    return Column(name, Type.I32, meaning)


def _text(name: str, meaning: str, values: tuple[str, ...] = ()) -> Column:
    return Column(name, Type.STR, meaning, values)


def _flag(name: str, meaning: str) -> Column:
    return Column(name, Type.BOOL, meaning)


RANK = _small("rank", "the process that wrote the row, 0 when there is one")
STEP = _int("step", "engine step the row belongs to")


def _table(name: str, row: str, ts: str, required: str, *columns: Column) -> Table:
    return Table(name, row, (RANK, STEP, _int("ts_ns", ts), *columns), tuple(required.split()))


STEPS = _table(
    "steps", "an engine step", "when the step began", "step ts_ns kind",
    _int("dur_ns", "how long it took, with all that it launched; null while it runs"),
    _text("kind", "what the batch was", STEP_KINDS),
    _small("num_prefill_reqs", "requests in prefill"),
    _small("num_decode_reqs", "requests in decode"),
    _int("num_prefill_tokens", "tokens of prefill"),
    _int("num_decode_tokens", "tokens of decode"),
    _int("token_budget", "most tokens that the batch may hold"),
    _int("reserved_tokens", "budget held back for decodes"),
    _small("num_waiting", "requests waiting after the batch was formed"),
    _small("num_running", "requests running after the batch was formed"),
    _int("kv_blocks_free", "free KV blocks after the batch was formed"),
    _int("kv_blocks_total", "KV blocks of the pool"),
    _text("executed_path", "the code path that ran"),
    _int("logits_rows", "rows of logits computed"),
    _text("tag", "the profiler tag or log line that the step was read from"),
    _text("inferred", "null if recorded, else from what kind and counts were inferred"),
    _int("cpu_dur_ns", "how long the CPU was in it, from ts_ns on; null where not told apart"),
    _int("gpu_ts_ns", "when the first of what it launched began on the GPU; null: nothing known"),
    _int("gpu_dur_ns", "from then until the last of what it launched had ended"),
    _int("gpu_busy_ns", "how much of that any of what it launched was executed"),
    _int("formed_ns", "when the scheduler had formed its batch; null where that and ts_ns, when it "
         "began to run, are not told apart"),
    _int("kv_blocks_cached", "of the free KV blocks, those that the prefix cache can still find"),
    _small("pp_stage", "stage of the pipeline that ran it; null where there is one"),
    Column("reserve_ratio", Type.F64, "share of the tokens that its requests may still generate "
           "that admission keeps room for"),
)  # fmt: skip

BATCH_ROWS = _table(
    "batch_rows", "a request in a step's batch", "when the batch was formed",
    "step ts_ns request phase num_tokens",
    _small("row", "position in the batch"),
    _text("request", "request id"),
    _text("phase", "prefill or decode", PHASES),
    _small("slot", "slot of the request"),
    _int("num_tokens", "tokens scheduled in this step"),
    _int("num_computed", "tokens of the request computed before this step"),
    _int("num_cached", "tokens found in the prefix cache"),
    _small("num_draft", "draft tokens proposed"),
    _small("num_accepted", "draft tokens accepted"),
    _int("prompt_len", "tokens of the prompt"),
    _flag("is_final_chunk", "this chunk ends the prefill"),
    _flag("is_recompute", "computes again what a preemption threw away"),
)  # fmt: skip

SEGMENTS = _table(
    "segments", "a part of a batch that runs by itself", "when the segment began",
    "step ts_ns segment phase num_rows num_tokens",
    _small("segment", "position among the step's segments"),
    _text("phase", "prefill or decode", PHASES),
    _small("first_row", "first row of the batch in it"),
    _small("num_rows", "rows in it"),
    _int("num_tokens", "tokens in it"),
    _int("first_cu_len", "first cumulative length; 0 when rebased"),
    _int("last_cu_len", "last cumulative length; num_tokens when rebased"),
    _text("executed_path", "the code path that ran"),
    _int("input_ids_len", "length of input_ids; null where missing"),
    _int("positions_len", "length of positions; null where missing"),
    _int("slot_mapping_len", "length of slot_mapping; null where missing"),
)  # fmt: skip

LIFECYCLE = _table(
    "lifecycle", "a request's event", "when it happened", "ts_ns request event",
    _text("request", "request id"),
    _text("event", "what happened", LIFECYCLE_EVENTS),
    _text("cause", "why, in the engine's words"),
    _text("by_request", "the request on whose behalf it happened"),
    _small("queue_index", "place in the waiting queue after the event; null when not in it"),
    _int("prompt_len", "tokens of the prompt (on arrive)"),
    _int("max_tokens", "most tokens to generate (on arrive)"),
    _int("num_generated", "tokens generated so far"),
    _small("priority", "priority, lower first (on arrive)"),
    _int("deadline_ns", "time by which it should have finished (on arrive)"),
    _text("external_id", "the client's own id of the request (on receive or arrive)"),
    _text("lora", "the LoRA adapter that it asks for (on arrive)"),
    _text("alike", "the request that its prompt, or at its end all of it, begins like"),
    _int("num_alike", "how many of its first tokens are the first of that request"),
    _flag("ignore_eos", "it goes on past an end-of-sequence token, to max_tokens (on arrive)"),
)  # fmt: skip

DECISIONS = _table(
    "decisions", "something considered and not (or specially) done", "when it was decided",
    "ts_ns subject_kind subject verdict",
    _text("subject_kind", "what was considered", SUBJECTS),
    _text("subject", "its id: request, bucket or task"),
    _text("verdict", "what was decided", VERDICTS),
    _text("reason", "why, in the engine's words"),
    _text("resource", "which resource was short or was looked at, or for what a request was not "
          "ready; null where no word of these says it, or it is not known; a task's in the "
          "engine's words", WHAT_BLOCKS),
    _int("needed", "how much of it was needed"),
    _int("available", "how much of it was free"),
    _text("holder", "who held it"),
    _text("instead", "what was taken instead"),
    _small("thread", "scheduler thread that decided"),
)  # fmt: skip

ALLOCATIONS = _table(
    "allocations", "a slot or KV block changing hands", "when it changed hands",
    "ts_ns resource id op owner",
    _text("resource", "what changed hands", RESOURCES),
    _int("id", "number of the block or slot, one for one thing whatever group uses it"),
    _text("op", "what was done", ALLOCATION_OPS),
    _text("owner", "request that claims, shares, releases or lets go of it"),
    _int("generation", "how often it had been claimed before"),
    _small("group", "KV cache group that uses it"),
    _text("block_hash", "hash by which the prefix cache finds its contents (on cache and evict)"),
    _int("source", "number of the block that its contents were copied from (on copy)"),
)  # fmt: skip

ACCESSES = _table(
    "accesses", "a read or write of a shared buffer, or a synchronisation", "when it was issued",
    "ts_ns op stream",
    _text("buffer", "name of the buffer"),
    _int("first", "first byte or row"),
    _int("last", "one past the last byte or row"),
    _text("op", "what was done", ACCESS_OPS),
    _text("stream", "stream or thread that did it"),
    _small("segment", "segment of the batch"),
    _int("epoch", "version of the contents read or written"),
    _text("event", "event recorded or waited for"),
    _text("digest", "digest of the contents"),
)  # fmt: skip

TASKS = _table(
    "tasks", "a task of a step's graph", "when it was submitted", "ts_ns task shape num_blocks",
    _int("task", "task id, unique in a rank"),
    _text("name", "kernel or operation"),
    _text("shape", "which cores it needs", SHAPES),
    _small("core_mask", "AIC=1, AIV0=2, AIV1=4; 0 is a dummy"),
    _small("num_blocks", "blocks, each dispatched by itself"),
    _flag("is_sync_start", "all blocks start together or none"),
    _int("ready_ns", "when its last predecessor ended"),
    _int("retired_ns", "when its last block ended"),
    _text("outcome", "what became of it", OUTCOMES),
)  # fmt: skip

CORE_SPANS = _table(
    "core_spans", "a task block on one core", "when the block began to execute",
    "ts_ns task block shape group core",
    _int("task", "task id"),
    _small("block", "block of the task, from 0"),
    _text("shape", "shape of the task", SHAPES),
    _small("group", "core group"),
    _small("core", "core id"),
    _text("core_kind", "the core's place in its group", CORE_KINDS),
    _text("slot", "the core's slot that it was dispatched to", CORE_SLOTS),
    _int("ready_ns", "when the block could have run"),
    _int("dispatch_ns", "when it was dispatched"),
    _int("end_ns", "when it ended; null if it never did"),
    _small("thread", "scheduler thread that dispatched it"),
)  # fmt: skip

TASK_EDGES = _table(
    "task_edges", "a dependency between tasks", "when it was found", "from_task to_task",
    _int("from_task", "the earlier task"),
    _int("to_task", "the task that waits for it"),
    _text("source", "what made them depend: a tensor, or an explicit edge"),
)  # fmt: skip

COLLECTIVES = _table(
    "collectives", "a collective or a protocol command", "when the rank, or its device, entered it",
    "ts_ns ordinal op",
    _text("stream", "stream or communicator it was issued on"),
    _int("ordinal", "position in the group's sequence; null where other ranks' is not known"),
    _text("op", "operation"),
    _text("dtype", "element type"),
    _int("num_elements", "elements sent"),
    _int("num_bytes", "bytes sent"),
    _text("group", "process group"),
    _text("expected_ranks", "ranks that should join, separated by commas"),
    _text("command", "protocol command"),
    _small("slot", "slot the command is for"),
    _int("dur_ns", "how long it took; null if it never ended"),
    _text("inferred", "null if recorded, else from what it was inferred"),
)  # fmt: skip

OUTPUTS = _table(
    "outputs", "a sampled token", "when it was sampled", "ts_ns request position",
    _text("request", "request id"),
    _int("position", "position in the request's output, from 0"),
    _int("token", "token id; null unless contents are recorded"),
    _flag("is_placeholder", "stands for a token that is sampled later"),
    _int("source_step", "step whose logits it was sampled from"),
    _text("digest", "digest of the logits; nan where one of them is not a number"),
    _text("solo_digest", "digest of the logits of the request alone; null where it was not run"),
)  # fmt: skip

SPANS = _table(
    "spans", "any timed slice or instant: kernels, CPU ops, annotations", "when it began",
    "ts_ns track name",
    _int("span", "span id, unique in a rank"),
    _text("track", "where it ran: process / thread or stream"),
    _text("name", "name"),
    _text("category", "category, as the producer spells it"),
    _text("form", "slice, instant, async, or a slice that never ended", SPAN_FORMS),
    _int("dur_ns", "how long it took; null if instant or unfinished"),
    _int("parent", "span id of the enclosing slice on its track"),
    _int("correlation", "number shared by a launch and what it launched"),
    _text("args", "arguments, as JSON text"),
)  # fmt: skip

FLOWS = _table(
    "flows", "one end of an arrow between spans", "when the arrow begins or ends",
    "ts_ns flow end",
    _text("flow", "id shared by the ends"),
    _text("name", "name"),
    _text("category", "category"),
    _text("track", "track of the span that it touches"),
    _text("end", "which end", FLOW_ENDS),
)  # fmt: skip

COUNTERS = _table(
    "counters", "a sampled number", "when it was sampled", "ts_ns name value",
    _text("track", "where it belongs"),
    _text("name", "name"),
    _text("unit", "unit"),
    Column("value", Type.F64, "value"),
)  # fmt: skip

QUEUE_ORDER = _table(
    "queue_order", "a request in a queue that was sorted anew", "when the queue had been sorted",
    "ts_ns index request",
    _small("index", "place in the queue, from 0; the whole queue has one ts_ns"),
    _text("request", "request id"),
    _text("queue", "which queue; null where there is one"),
)  # fmt: skip

TABLES: tuple[Table, ...] = (
    STEPS, BATCH_ROWS, SEGMENTS, LIFECYCLE, DECISIONS, ALLOCATIONS, ACCESSES, TASKS, CORE_SPANS,
    TASK_EDGES, COLLECTIVES, OUTPUTS, SPANS, FLOWS, COUNTERS,
    QUEUE_ORDER,
)  # fmt: skip
BY_NAME: dict[str, Table] = {table.name: table for table in TABLES}
