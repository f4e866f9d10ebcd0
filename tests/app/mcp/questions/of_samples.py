"""Questions over sample_traces/, which are always there."""

from __future__ import annotations

from tests.app.mcp.questions.question import Question

BEFORE, AFTER = "fcfs-preemption-before.trace", "fcfs-preemption-after.trace"
PROFILE, CROWD = "torch_profiler_cpu.json.gz", "vllm_crowd.trace"
CORES, CORES_AFTER = "mix-admission-before.trace", "mix-admission-after.trace"
RANKS, PREFIXES = "perfetto_two_ranks.pftrace", "vllm_prefixes.trace"

QUESTIONS = (
    Question(
        "How many requests were given up by their clients?", BEFORE, (("summary", {}),),
        "select count(*) from lifecycle where event = 'abort'", 40, ('"aborted":{}',),
    ),
    Question(
        "Did any request finish before the fix?", BEFORE, (("summary", {}),),
        "select count(*) from lifecycle where event = 'finish'", 0, ('"finished":{}',),
    ),
    Question(
        "And after it?", AFTER, (("summary", {}),),
        "select count(*) from lifecycle where event = 'finish'", 40, ('"finished":{}',),
    ),
    Question(
        "How often was somebody preempted?", BEFORE, (("summary", {}),),
        "select count(*) from lifecycle where event = 'preempt'", 230, ('"preemptions":{}',),
    ),
    Question(
        "How long did the run take?", BEFORE, (("summary", {}),),
        "select max(ts_ns + dur_ns) - min(ts_ns) from steps", 21649031363, ('"makespan_ns":{}',),
    ),
    Question(
        "How many steps were decodes?", BEFORE, (("open", {}),),
        "select count(*) from steps where kind = 'decode'", 74, ('"decode":{}',),
    ),
    Question(
        "Which step took longest?", BEFORE, (("summary", {}),),
        "select step from steps order by dur_ns desc limit 1", 68, ('"{}    prefill  2.02 s',),
    ),
    Question(
        "How many KV blocks has the pool, and how many were free at step 40?", BEFORE,
        (("state", {"at": 40, "side": "budget"}),),
        "select kv_blocks_total from steps where step = 40", 60,
        ('"kv_blocks_total":{}', '"kv_blocks_free":0'),
    ),
    Question(
        "Who headed the queue at step 40, and what did it lack?", BEFORE,
        (("state", {"at": 40, "side": "waiting"}),),
        "select subject from decisions where step <= 40 and verdict = 'deferred' "
        "and resource = 'kv-block' order by seq desc limit 1", "req-30",
        ('"place":0,"request":"{}"', "too few KV blocks are free", '"needed":2,"available":0'),
    ),
    Question(
        "How many were in the batch of step 40?", BEFORE,
        (("state", {"at": 40, "side": "batch"}),),
        "select count(*) from batch_rows where step = 40", 30, ("of {}: requests of the step",),
    ),
    Question(
        "How many requests never ran?", BEFORE,
        (("sql", {"query": "select count(distinct l.request) from lifecycle l left join batch_rows "
                           "b on l.request = b.request where b.request is null"}),),
        "select count(distinct request) from lifecycle where request not in "
        "(select request from batch_rows)", 9, ("[{}]",),
    ),
    Question(
        "Why does req-30 wait at step 40?", BEFORE, (("why", {"who": "req-30", "at": 40}),),
        "select holder from decisions where subject = 'req-30' and resource = 'kv-block' "
        "and step <= 40 order by seq desc limit 1", "req-00",
        ("running until: {} runs until", "needs 2, free 0, {} and 29 more hold it"),
    ),
    Question(
        "Was req-07 in the batch of step 40?", BEFORE,
        (("why", {"who": "req-07", "not_in_step": 40}),),
        "select count(*) from batch_rows where step = 40 and request = 'req-07'", 1,
        ("it is in the batch of step 40",),
    ),
    Question(
        "Where did most of the time of req-07 go?", BEFORE, (("blame", {"request": "req-07"}),),
        "select max(ts_ns) - min(ts_ns) from lifecycle where request = 'req-07'", 21644966512,
        ('"latency_ns":{}', '"preempted":14312783731'),
    ),
    Question(
        "How many requests starved?", BEFORE, (("check", {"rules": "STV001"}),),
        "select count(*) from lifecycle where event = 'arrive' and deadline_ns is not null", 40,
        ('"STV001":{}', "request-starved"),
    ),
    Question(
        "Does starvation remain after the fix?", AFTER, (("check", {"rules": "STV001"}),),
        "select count(*) from lifecycle where event = 'abort'", 0, ('"found": {{}}', '["STV001"]'),
    ),
    Question(
        "What does STV001 mean, and how is it mended?", BEFORE,
        (("explain", {"name": "STV001"}),),
        "select 1 from steps limit 1", 1, ("# STV001 request-starved", "## How to fix"),
    ),
    Question(
        "At which step do the runs before and after the fix decide differently?", BEFORE,
        (("diff", {"a": BEFORE, "b": AFTER}),),
        "the first step of which the rows of batch_rows differ, in their order", 3,
        ('"step":{}', "they diverge in step {}: batch"),
    ),
    Question(
        "How many steps of the profile were mixed batches?", PROFILE, (("open", {}),),
        "select count(*) from steps where kind = 'mixed'", 7, ('"mixed":{}',),
    ),
    Question(
        "How often was addmm called?", PROFILE, (("find", {"name": "aten::addmm"}),),
        "select count(*) from spans where name = 'aten::addmm'", 85, ('"occurs":{}',),
    ),
    Question(
        "Are the steps of the profile recorded or inferred?", PROFILE, (("open", {}),),
        "select count(*) from steps where inferred is not null", 17, ("inferred {}",),
    ),
    Question(
        "How many tasks are MIX?", CORES,
        (("sql", {"query": "select shape, count(*) from tasks group by shape order by shape"}),),
        "select count(*) from tasks where shape = 'MIX'", 48, ('["MIX",{}]',),
    ),
    Question(
        "How many cores ran anything?", CORES,
        (("sql", {"query": "select count(distinct core) from core_spans"}),),
        "select count(distinct core) from core_spans", 24, ("[{}]",),
    ),
    Question(
        "Was a MIX block let in while a core of its group was busy?", CORES,
        (("check", {"rules": "COR001"}),),
        "the scenario's broken variant, docs/seeds.md", None, ("mix-on-occupied-group",),
    ),
    Question(
        "And after the fix?", CORES_AFTER, (("check", {"rules": "COR001"}),),
        "the scenario's fix, docs/seeds.md", None, ('"clean": ["COR001"]',),
    ),
    Question(
        "How many requests had the vLLM, and did all finish?", CROWD, (("summary", {}),),
        "select count(*) from lifecycle where event = 'finish'", 20,
        ('"requests":{}', '"finished":{}', '"producer":"vllm"'),
    ),
    Question(
        "How long was its queue at most?", CROWD, (("summary", {}),),
        "select max(num_waiting) from steps", 17, ('"waiting_max":{}.0',),
    ),
    Question(
        "Why was 3-9635d8cf deferred first?", CROWD,
        (("blame", {"request": "3-9635d8cf"}),),
        "select reason from decisions where subject = '3-9635d8cf' order by seq limit 1",
        "the token budget is spent", ("{}",),
    ),
    Question(
        "How many tokens were found in the prefix cache?", PREFIXES,
        (("sql", {"query": "select sum(num_cached) from batch_rows"}),),
        "select sum(num_cached) from batch_rows", 1536, ("[{}]",),
    ),
    Question(
        "How many ranks wrote the Perfetto trace?", RANKS, (("summary", {}),),
        "select count(distinct rank) from spans", 2, ('"num_ranks":{}',),
    ),
    # ── traps: what the trace does not hold ──────────────────────────────────────────────────
    Question(
        "What was the median latency of finished requests?", BEFORE, (("summary", {}),),
        "select count(*) from lifecycle where event = 'finish'",
        lacks="latencies of requests", never=("latency_p50_ns", "latency_mean_ns"),
    ),
    Question(
        "How busy was the GPU?", BEFORE, (("summary", {}),),
        "select count(*) from spans", lacks="what a GPU executed", never=('"gpu_busy"',),
    ),
    Question(
        "Which kernel took most time?", BEFORE, (("find", {"name": "kernel"}),),
        "select count(*) from spans", lacks="spans, such as kernels",
    ),
    Question(
        "How many core spans are there?", BEFORE,
        (("sql", {"query": "select count(*) from core_spans"}),),
        "select count(*) from core_spans", lacks="the table core_spans",
    ),
    Question(
        "Which request of the profile waited longest?", PROFILE, (("blame", {}),),
        "select count(*) from lifecycle", lacks="requests: the trace names none",
        never=('"request":"',),
    ),
    Question(
        "Why does req-1 wait?", PROFILE, (("why", {"who": "req-1"}),),
        "select count(*) from lifecycle", lacks="requests, and why any of them waits",
    ),
    Question(
        "How many KV blocks were held at step 4?", PROFILE,
        (("state", {"at": 4, "side": "blocks"}),),
        "select count(*) from allocations", lacks="KV blocks that are held",
    ),
    Question(
        "How many requests waited at step 4?", PROFILE, (("state", {"at": 4}),),
        "select count(*) from lifecycle", lacks="waiting: requests of the waiting queue",
        never=('"side":"waiting"',),
    ),
    Question(
        "How much GPU time did its steps take?", PROFILE,
        (("sql", {"query": "select sum(gpu_busy_ns) from steps"}),),
        "select count(gpu_busy_ns) from steps", lacks="the column steps.gpu_busy_ns",
    ),
    Question(
        "How many preemptions has the profile?", PROFILE, (("summary", {}),),
        "select count(*) from lifecycle", lacks="preemptions", never=('"preemptions"',),
    ),
    Question(
        "How many tokens were in its batches?", PROFILE,
        (("sql", {"query": "select sum(num_tokens) from batch_rows"}),),
        "select count(*) from batch_rows", lacks="the table batch_rows",
    ),
    Question(
        "Does any KV block have two owners in the profile?", PROFILE,
        (("check", {"rules": "KVB001"}),),
        "select count(*) from allocations", lacks="KVB001", never=('"clean": ["KVB001"',),
    ),
    Question(
        "How many draft tokens did this vLLM accept?", CROWD,
        (("sql", {"query": "select sum(num_accepted) from batch_rows"}),),
        "select count(num_accepted) from batch_rows", lacks="the column batch_rows.num_accepted",
    ),
    Question(
        "How many collectives did it wait in?", CROWD,
        (("sql", {"query": "select count(*) from collectives"}),),
        "select count(*) from collectives", lacks="the table collectives",
    ),
    Question(
        "How full was the KV cache of the two ranks?", RANKS, (("summary", {}),),
        "select count(kv_blocks_free) from steps", lacks="use of the KV cache",
        never=("kv_usage",),
    ),
)  # fmt: skip
