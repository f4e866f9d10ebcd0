"""Questions over other people's files and recorded runs, which are not everywhere.

What is true of the recorded runs is what their notes say, which the scheduler itself wrote.
"""

from __future__ import annotations

from tests.app.mcp.questions.question import Question

H100 = "kineto/h100_qwen15_05b_chat.json.gz"
RETRACT, ARRIVALS = "logs/sglang_retract.log", "requests/azure_conv.csv"
SWIMLANE = "swimlane/TestMixedExample_case1"
MIX, SERVED = "gen_mix.trace", "serve_prefix.trace"

OF_DATA = (
    Question(
        "How many kernels did the H100 run?", H100,
        (("sql", {"query": "select count(*) from spans where category = 'kernel'"}),),
        "select count(*) from spans where category = 'kernel'", 1465, ("[{}]",),
    ),
    Question(
        "How many requests did SGLang retract?", RETRACT, (("summary", {}),),
        "select count(*) from lifecycle where event = 'preempt'", 5, ('"preemptions":{}',),
    ),
    Question(
        "How many requests arrived, and how many tokens had their prompts?", ARRIVALS,
        (("sql", {"query": "select count(*), sum(prompt_len) from lifecycle"}),),
        "select sum(prompt_len) from lifecycle", 22361870, ("[19366,{}]",),
    ),
    Question(
        "How many tasks had the mixed example?", SWIMLANE, (("open", {}),),
        "select count(*) from tasks", 20, ('"table":"tasks","rows":{}',),
    ),
    Question(
        "Which request of the H100's profile was slowest?", H100, (("blame", {}),),
        "select count(*) from lifecycle", lacks="requests: the trace names none",
        never=('"request":"',),
    ),
    Question(
        "How long did the requests of this list take?", ARRIVALS, (("summary", {}),),
        "select count(*) from steps", lacks="latencies of requests", never=("latency_p50_ns",),
    ),
    Question(
        "How full was SGLang's batch in tokens of each request?", RETRACT,
        (("state", {"at": "end", "side": "batch"}),),
        "select count(*) from batch_rows", lacks="batch: requests of the step's batch",
    ),
)  # fmt: skip
OF_RECORDED = (
    Question(
        "How many requests had gen_mix, and how many preemptions?", MIX, (("summary", {}),),
        "its README: 40 requests, 20 preemptions", 20, ('"requests":40', '"preemptions":{}'),
    ),
    Question(
        "How many did vLLM itself end as errors?", MIX, (("check", {"rules": "STV012"}),),
        "its README: 14 that vLLM itself ended", 14, ('"STV012":{}', "{} of 40 requests"),
    ),
    Question(
        "How many preemptions had serve_prefix, and how many aborts?", SERVED, (("summary", {}),),
        "its README: 6 client aborts, 21 preemptions", 21,
        ('"preemptions":{}', '"aborted":6'),
    ),
    Question(
        "Has any KV block two owners?", MIX, (("check", {"rules": "KVB001"}),),
        "its README: never", None, ('"clean": ["KVB001"]',),
    ),
    Question(
        "How busy was the GPU of serve_prefix?", SERVED, (("summary", {}),),
        "select count(*) from spans", lacks="what a GPU executed", never=('"gpu_busy"',),
    ),
)  # fmt: skip
