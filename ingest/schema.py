"""Every table of a trace: its columns, their types, units and meaning.

This is the one place where they are written. The recorder packs rows by it, the store and the
readers build frames by it, the docs are made from it. It imports the standard library only,
because the recorder runs inside other people's servers.

Every table starts with `rank`, `step`, `ts_ns`. Times are int64 nanoseconds on the clock that
the manifest names. Null means "not known" everywhere; zero means zero.
"""

from __future__ import annotations

from stepscope.ingest.columns import Column, Table, Type, flag, i32, i64, text

FORMAT_VERSION = 2
"""What `format_version.py` lists; a new table or column is a new version."""

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
    "core-group", "core",
)  # fmt: skip
COLLECTIVE = "collective_comm"
"""What kineto calls an operation of a communication library that is no single kernel."""
ON_DEVICE = (
    "kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "kernel_dispatch", "memory_copy",
    COLLECTIVE,
)  # fmt: skip
"""Categories of spans that a device executes, in small letters: torch.profiler's, those that it had
in 2021 (`Kernel`), and rocprofv3's."""
RESOURCES = ("kv-block", "slot", "kv-token")
ALLOCATION_OPS = ("claim", "release", "share", "move", "cache", "evict", "copy", "let-go")
ACCESS_OPS = ("read", "write", "copy", "record", "wait", "synchronize")
SHAPES = ("AIC", "AIV", "MIX", "DUMMY")
CORE_KINDS = ("AIC", "AIV0", "AIV1")
OUTCOMES = ("run", "skipped", "dummy", "pending")
CORE_SLOTS = ("running", "pending")
READY_QUEUES = (*SHAPES, "sync-start")
DOES = ("submit", "wait", "poll", "complete", "skip", "dispatch", "sleep", "exit")
SPAN_FORMS = ("slice", "instant", "async", "unfinished")
FLOW_ENDS = ("start", "step", "finish")


RANK = i32("rank", "the process that wrote the row, 0 when there is one")
STEP = i64("step", "engine step the row belongs to")


SEQ = i64(
    "seq",
    "place in the order of all the rank's rows of state; rows of one call share it, and "
    "it is null where none was counted",
)


def _table(name: str, row: str, ts: str, required: str, *columns: Column) -> Table:
    return Table(name, row, (RANK, STEP, i64("ts_ns", ts), *columns), tuple(required.split()))


STEPS = _table(
    "steps", "an engine step", "when the step began", "step ts_ns kind",
    i64("dur_ns", "how long it took, with all that it launched; null while it runs"),
    text("kind", "what the batch was", STEP_KINDS),
    i32("num_prefill_reqs", "requests in prefill"),
    i32("num_decode_reqs", "requests in decode"),
    i64("num_prefill_tokens", "tokens of prefill"),
    i64("num_decode_tokens", "tokens of decode"),
    i64("token_budget", "most tokens that the batch may hold"),
    i64("reserved_tokens", "budget held back for decodes"),
    i32("num_waiting", "requests waiting after the batch was formed"),
    i32("num_running", "requests running after the batch was formed"),
    i64("kv_blocks_free", "free KV blocks after the batch was formed"),
    i64("kv_blocks_total", "KV blocks of the pool"),
    text("executed_path", "the code path that ran"),
    i64("logits_rows", "rows of logits computed"),
    text("tag", "the profiler tag or log line that the step was read from"),
    text("inferred", "null if recorded, else from what kind and counts were inferred"),
    i64("cpu_dur_ns", "how long the CPU was in it, from ts_ns on; null where not told apart"),
    i64("gpu_ts_ns", "when the first of what it launched began on the GPU; null: nothing known"),
    i64("gpu_dur_ns", "from then until the last of what it launched had ended"),
    i64("gpu_busy_ns", "how much of that any of what it launched was executed"),
    i64("formed_ns", "when the scheduler had formed its batch; null where that and ts_ns, when it "
         "began to run, are not told apart"),
    i64("kv_blocks_cached", "of the free KV blocks, those that the prefix cache can still find"),
    i32("pp_stage", "stage of the pipeline that ran it; null where there is one"),
    Column("reserve_ratio", Type.F64, "share of the tokens that its requests may still generate "
           "that admission keeps room for"),
    i32("by_rank", "the rank whose batch made this rank run what it ran, and not its own; null "
        "where none did"),
    SEQ,
)  # fmt: skip

BATCH_ROWS = _table(
    "batch_rows", "a request in a step's batch", "when the batch was formed",
    "step ts_ns request phase num_tokens",
    i32("row", "position in the batch"),
    text("request", "request id"),
    text("phase", "prefill or decode", PHASES),
    i32("slot", "slot of the request"),
    i64("num_tokens", "tokens scheduled in this step"),
    i64("num_computed", "tokens of the request computed before this step"),
    i64("num_cached", "tokens found in the prefix cache"),
    i32("num_draft", "draft tokens proposed"),
    i32("num_accepted", "draft tokens accepted"),
    i64("prompt_len", "tokens of the prompt"),
    flag("is_final_chunk", "this chunk ends the prefill"),
    flag("is_recompute", "computes again what a preemption threw away"),
    SEQ,
)  # fmt: skip

SEGMENTS = _table(
    "segments", "a part of a batch that runs by itself", "when the segment began",
    "step ts_ns segment phase num_rows num_tokens",
    i32("segment", "position among the step's segments"),
    text("phase", "prefill or decode", PHASES),
    i32("first_row", "first row of the batch in it"),
    i32("num_rows", "rows in it"),
    i64("num_tokens", "tokens in it"),
    i64("first_cu_len", "first cumulative length; 0 when rebased"),
    i64("last_cu_len", "last cumulative length; num_tokens when rebased"),
    text("executed_path", "the code path that ran"),
    i64("input_ids_len", "length of input_ids; null where missing"),
    i64("positions_len", "length of positions; null where missing"),
    i64("slot_mapping_len", "length of slot_mapping; null where missing"),
)  # fmt: skip

LIFECYCLE = _table(
    "lifecycle", "a request's event", "when it happened", "ts_ns request event",
    text("request", "request id"),
    text("event", "what happened", LIFECYCLE_EVENTS),
    text("cause", "why, in the engine's words"),
    text("by_request", "the request on whose behalf it happened"),
    i32("queue_index", "place in the waiting queue after the event; null when not in it"),
    i64("prompt_len", "tokens of the prompt (on arrive)"),
    i64("max_tokens", "most tokens to generate (on arrive)"),
    i64("num_generated", "tokens generated so far"),
    i32("priority", "priority, lower first (on arrive)"),
    i64("deadline_ns", "time by which it should have finished (on arrive)"),
    text("external_id", "the client's own id of the request (on receive or arrive)"),
    text("lora", "the LoRA adapter that it asks for (on arrive)"),
    text("alike", "the request that its prompt, or at its end all of it, begins like"),
    i64("num_alike", "how many of its first tokens are the first of that request"),
    flag("ignore_eos", "it goes on past an end-of-sequence token, to max_tokens (on arrive)"),
    SEQ,
)  # fmt: skip

DECISIONS = _table(
    "decisions", "something considered and not (or specially) done", "when it was decided",
    "ts_ns subject_kind subject verdict",
    text("subject_kind", "what was considered", SUBJECTS),
    text("subject", "its id: request, bucket or task"),
    text("verdict", "what was decided", VERDICTS),
    text("reason", "why, in the engine's words"),
    text("resource", "which resource was short or was looked at, or for what a request was not "
          "ready; null where no word of these says it, or it is not known; a task's in the "
          "engine's words", WHAT_BLOCKS),
    i64("needed", "how much of it was needed"),
    i64("available", "how much of it was free"),
    text("holder", "who held it, or goes first: a request by its id, a task by its number"),
    text("instead", "what was taken instead"),
    i32("thread", "scheduler thread that decided"),
    text("site", "where the policy decided: its functions from the outermost, each with the line "
         "in it, and a digest of their source"),
    i32("core", "core on which the holder was found, where it is a task"),
    SEQ,
)  # fmt: skip

ALLOCATIONS = _table(
    "allocations", "a slot or KV block changing hands", "when it changed hands",
    "ts_ns resource id op owner",
    text("resource", "what changed hands", RESOURCES),
    i64("id", "number of the block or slot, one for one thing whatever group uses it"),
    text("op", "what was done", ALLOCATION_OPS),
    text("owner", "request that claims, shares, releases or lets go of it"),
    i64("generation", "how often it had been claimed before"),
    i32("group", "KV cache group that uses it"),
    text("block_hash", "hash by which the prefix cache finds its contents (on cache and evict)"),
    i64("source", "number of the block that its contents were copied from (on copy), or that it "
        "had before (on move)"),
    SEQ,
)  # fmt: skip

ACCESSES = _table(
    "accesses", "a read or write of a shared buffer, or a synchronisation", "when it was issued",
    "ts_ns op stream",
    text("buffer", "name of the buffer"),
    i64("first", "first byte or row"),
    i64("last", "one past the last byte or row"),
    text("op", "what was done", ACCESS_OPS),
    text("stream", "stream or thread that did it"),
    i32("segment", "segment of the batch"),
    i64("epoch", "version of the contents read or written"),
    text("event", "event recorded or waited for"),
    text("digest", "digest of the contents"),
)  # fmt: skip

TASKS = _table(
    "tasks", "a task of a step's graph", "when it was submitted", "ts_ns task shape num_blocks",
    i64("task", "task id, unique in a rank"),
    text("name", "kernel or operation"),
    text("shape", "which cores it needs", SHAPES),
    i32("core_mask", "AIC=1, AIV0=2, AIV1=4; 0 is a dummy"),
    i32("num_blocks", "blocks, each dispatched by itself"),
    flag("is_sync_start", "all blocks start together or none"),
    i64("ready_ns", "when its last predecessor ended"),
    i64("retired_ns", "when its last block ended"),
    text("outcome", "what became of it", OUTCOMES),
    i64("queued_ns", "when it was put into the queue of those that are ready"),
    i64("reclaimed_ns", "when the rings took back what it held"),
    i64("heap_bytes", "bytes of the heap ring that it held, with those skipped before them; null "
        "where it was never submitted"),
    text("queue", "ready queue that it was put into, at queued_ns", READY_QUEUES),
    i64("dequeued_ns", "when it was in no ready queue any more: all of its blocks had been given "
        "cores, or it was taken to be skipped"),
)  # fmt: skip

CORE_SPANS = _table(
    "core_spans", "a task block on one core", "when the block began to execute",
    "ts_ns task block shape group core",
    i64("task", "task id"),
    i32("block", "block of the task, from 0"),
    text("shape", "shape of the task", SHAPES),
    i32("group", "core group"),
    i32("core", "core id"),
    text("core_kind", "the core's place in its group", CORE_KINDS),
    text("slot", "the core's slot that it was dispatched to", CORE_SLOTS),
    i64("ready_ns", "when the block could have run"),
    i64("dispatch_ns", "when it was dispatched"),
    i64("end_ns", "when it ended; null if it never did"),
    i32("thread", "scheduler thread that dispatched it"),
    i64("claim_ns", "when that thread took the core for it, before it was dispatched"),
)  # fmt: skip

CORE_WAITS = _table(
    "core_waits", "a task block that was dispatched to a core and never began there",
    "when it was dispatched", "ts_ns task block shape group core",
    i64("task", "task id"),
    i32("block", "block of the task, from 0"),
    text("shape", "shape of the task", SHAPES),
    i32("group", "core group"),
    i32("core", "core id"),
    text("core_kind", "the core's place in its group", CORE_KINDS),
    text("slot", "the core's slot that it was dispatched to", CORE_SLOTS),
    i64("ready_ns", "when the block could have run"),
    i32("thread", "scheduler thread that dispatched it"),
    i64("claim_ns", "when that thread took the core for it, before it was dispatched"),
)  # fmt: skip

READY_ORDER = _table(
    "ready_order", "a task in a ready queue that is not in the order of queued_ns and of numbers",
    "when the queue had come into that order", "ts_ns queue index task",
    text("queue", "which queue: that of a shape, of those that are skipped or are dummies, or of "
         "the one task whose blocks all start together", READY_QUEUES),
    i32("index", "place in the queue, from 0; it is told from the first on that stands otherwise"),
    i64("task", "task id"),
)  # fmt: skip

THREAD_PHASES = _table(
    "thread_phases", "a thread of a device's scheduler that began to do something else",
    "when it began; it goes on until the thread's next row", "ts_ns phase",
    i32("thread", "scheduler thread; null for the orchestrator, which submits tasks"),
    text("phase", "what it does: submits tasks or waits for room in a ring; polls its cores, "
         "completes blocks that ended, skips tasks, prepares a dispatch, sleeps until it is woken; "
         "exit when the graph is over", DOES),
)  # fmt: skip

TASK_EDGES = _table(
    "task_edges", "a dependency between tasks", "when it was found", "from_task to_task",
    i64("from_task", "the earlier task"),
    i64("to_task", "the task that waits for it"),
    text("source", "what made them depend: a tensor, or an explicit edge"),
)  # fmt: skip

COLLECTIVES = _table(
    "collectives", "a collective or a protocol command", "when the rank, or its device, entered it",
    "ts_ns ordinal op",
    text("stream", "stream or communicator it was issued on"),
    i64("ordinal", "position in the group's sequence; null where other ranks' is not known"),
    text("op", "operation"),
    text("dtype", "element type"),
    i64("num_elements", "elements sent"),
    i64("num_bytes", "bytes sent"),
    text("group", "process group"),
    text("expected_ranks", "ranks that should join, separated by commas"),
    text("command", "protocol command"),
    i32("slot", "slot the command is for"),
    i64("dur_ns", "how long it took; null if it never ended"),
    text("inferred", "null if recorded, else from what it was inferred"),
    text("rows", "rows of the step's batch that it is for, separated by commas; null where the "
         "rank knows of none"),
)  # fmt: skip

OUTPUTS = _table(
    "outputs", "a sampled token", "when it was sampled", "ts_ns request position",
    text("request", "request id"),
    i64("position", "position in the request's output, from 0"),
    i64("token", "token id; null unless contents are recorded"),
    flag("is_placeholder", "stands for a token that is sampled later"),
    i64("source_step", "step whose logits it was sampled from"),
    text("digest", "digest of the logits; nan where one of them is not a number"),
    text("solo_digest", "digest of the logits of the request alone; null where it was not run"),
)  # fmt: skip

SPANS = _table(
    "spans", "any timed slice or instant: kernels, CPU ops, annotations", "when it began",
    "ts_ns track name",
    i64("span", "span id, unique in a rank"),
    text("track", "where it ran: process / thread or stream"),
    text("name", "name"),
    text("category", "category, as the producer spells it"),
    text("form", "slice, instant, async, or a slice that never ended", SPAN_FORMS),
    i64("dur_ns", "how long it took; null if instant or unfinished"),
    i64("parent", "span id of the enclosing slice on its track"),
    i64("correlation", "number shared by a launch and what it launched"),
    text("args", "arguments, as JSON text"),
)  # fmt: skip

FLOWS = _table(
    "flows", "one end of an arrow between spans", "when the arrow begins or ends",
    "ts_ns flow end",
    text("flow", "id shared by the ends"),
    text("name", "name"),
    text("category", "category"),
    text("track", "track of the span that it touches"),
    text("end", "which end", FLOW_ENDS),
)  # fmt: skip

COUNTERS = _table(
    "counters", "a sampled number", "when it was sampled", "ts_ns name value",
    text("track", "where it belongs"),
    text("name", "name"),
    text("unit", "unit"),
    Column("value", Type.F64, "value"),
)  # fmt: skip

QUEUE_ORDER = _table(
    "queue_order", "a request in a queue that was sorted anew", "when the queue had been sorted",
    "ts_ns index request",
    i32("index", "place in the queue, from 0; the whole queue has one ts_ns"),
    text("request", "request id"),
    text("queue", "which queue; null where there is one"),
    SEQ,
)  # fmt: skip

SLOT_TOKENS = _table(
    "slot_tokens", "how much lies in a slot, whoever has it", "when that had changed",
    "ts_ns slot num_tokens",
    i32("slot", "number of the slot"),
    i64("num_tokens", "tokens whose KV lies in it from then on"),
    SEQ,
)  # fmt: skip

TABLES: tuple[Table, ...] = (
    STEPS, BATCH_ROWS, SEGMENTS, LIFECYCLE, DECISIONS, ALLOCATIONS, ACCESSES, TASKS, CORE_SPANS,
    CORE_WAITS, READY_ORDER, THREAD_PHASES, TASK_EDGES, COLLECTIVES, OUTPUTS, SPANS, FLOWS,
    COUNTERS, QUEUE_ORDER, SLOT_TOKENS,
)  # fmt: skip
OF_STATE: tuple[Table, ...] = tuple(table for table in TABLES if table.is_of_state)
"""The tables that tell how the state of a scheduler changes, whose rows have one order: `seq`."""
BY_NAME: dict[str, Table] = {table.name: table for table in TABLES}
