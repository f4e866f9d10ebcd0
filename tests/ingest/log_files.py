"""Small logs of each engine, and a trace out of one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from stepscope.ingest.manifest import ReadReport
from stepscope.ingest.trace import Trace

VLLM = """\
(APIServer pid=1) INFO 12-31 23:59:50 [api_server.py:1] vLLM API server version 0.27.1
(EngineCore_DP0 pid=7) INFO 12-31 23:59:58 [core.py:359] Iteration(1): 2 context requests, 300 \
context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 250.50 ms
(EngineCore_DP0 pid=7) INFO 12-31 23:59:58 [core.py:359] Iteration(2): 1 context requests, 64 \
context tokens, 2 generation requests, 2 generation tokens, iteration elapsed time: 20.00 ms
(APIServer pid=1) INFO 01-01 00:00:01 [loggers.py:9] Engine 000: Iteration(3): 0 context requests, \
0 context tokens, 3 generation requests, 3 generation tokens, iteration elapsed time: 10.00 ms, \
GPU KV cache usage: 37.1%
(APIServer pid=1) INFO 01-01 00:00:08 [loggers.py:9] Engine 000: Avg prompt throughput: 36.4 \
tokens/s, Running: 3 reqs, Waiting: 1 reqs, GPU KV cache usage: 38.0%, Prefix cache hit rate: 0.0%
"""
SGLANG = """\
[2025-07-18 15:32:51] server_args=ServerArgs(model_path='m', tp_size=1)
[2025-07-18 15:32:52 DP0 TP0] Prefill batch. #new-seq: 1, #new-token: 2192, #cached-token: 35, \
token usage: 0.00, #running-req: 0, #queue-req: 4, timestamp: 2025-07-18T15:32:52.498932
[2025-07-18 15:32:52 DP1 TP1] Prefill batch [12], #new-seq: 2, #new-token: 64, #cached-token: 0, \
token usage: 0.01, #running-req: 0, #queue-req: 0, cuda graph: False
[2025-07-18 15:32:54 DP0 TP0] Decode batch. #running-req: 1, #token: 2266, token usage: 0.25, \
cuda graph: True, gen throughput (token/s): 3.13, #queue-req: 3
[2025-07-18 15:32:55 DP0 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, \
#new_tokens_gained: 646, #new_token_ratio: 0.0980 -> 0.3487
"""
ATOM = """\
[atom 23:59:59] Scheduled prefill batch: 2 reqs, 30 new tokens (cached: [0, 16], new: [10, 20]), \
req_ids: (1, 2)
[atom 00:00:01] Scheduled prefill batch: 1 reqs, 12 tokens, req_ids: (3,)
[atom 00:00:02] Scheduled mixed batch: 2 prefill + 30 decode, 1024+30 tokens
[atom 00:00:02] Scheduled prefill batch: 2 reqs, 96 tokens, req_ids: (4, 5)
"""
TRTLLM = """\
[05/20/2026-23:24:41] [TRT-LLM] [I] iter = 1, global_rank = 1, rank = 1, currank_total_requests = \
0/1, host_step_time = 500.5ms, prev_device_step_time = N/A, timestamp = 2026-05-20 23:24:41, \
num_scheduled_requests: 3, states = {'num_ctx_requests': 1, 'num_ctx_tokens': 13694, \
'num_generation_tokens': 2}
iter = 2, global_rank = 1, rank = 1, num_scheduled_requests = 2, kv_cache_util = 0.125, \
currank_total_requests = 0/1, host_step_time = 4.08ms, prev_device_step_time = 243.13ms, \
timestamp = 05-20-2026 23:24:42, states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, \
'num_generation_tokens': 2, 'cached_kv_tokens': 0}
"""
STATISTICS = """\
{"iter": 5, "iterLatencyMS": 12.5, "timestamp": "07-15-2025 06:30:11.123456", \
"numActiveRequests": 3, "numQueuedRequests": 4, "gpuMemUsage": 1024, "kvCacheStats": \
{"maxNumBlocks": 100, "freeNumBlocks": 20, "usedNumBlocks": 80, "tokensPerBlock": 32}, \
"inflightBatchingStats": {"numScheduledRequests": 3, "numContextRequests": 1, "numGenRequests": 2, \
"numPausedRequests": 0, "numCtxTokens": 77, "microBatchId": 0}}
{"iter": 6, "iterLatencyMS": 2.5, "inflightBatchingStats": {"numContextRequests": 0, \
"numGenRequests": 3, "numCtxTokens": 0}}
"""
LLAMACPP = """\
0.00.100.000 I slot launch_slot_: id  3 | task 0 | processing task, is_child = 0
0.00.100.100 I slot update_slots: id  3 | task 0 | new prompt, n_ctx_slot = 4096, n_keep = 0, \
task.n_tokens = 600
0.00.100.200 I slot update_slots: id  3 | task 0 | n_tokens = 0, memory_seq_rm [0, end)
0.00.100.300 I slot update_slots: id  3 | task 0 | prompt processing progress, n_tokens = 512, \
batch.n_tokens = 512, progress = 0.853333
0.00.200.000 I slot launch_slot_: id  2 | task 5 | processing task, is_child = 0
0.00.200.100 I slot update_slots: id  2 | task 5 | n_tokens = 16, memory_seq_rm [16, end)
0.00.200.200 I slot update_slots: id  2 | task 5 | prompt processing done, n_tokens = 20, \
batch.n_tokens = 5
0.00.200.300 I slot update_slots: id  3 | task 0 | prompt processing done, n_tokens = 600, \
batch.n_tokens = 93
0.03.000.000 I slot print_timing: id  3 | task 0 | prompt processing, n_tokens =    600, progress \
= 1.00, t =   3.61 s / 1133.55 tokens per second
0.04.000.000 I slot print_timing: id 3 | task 0 | n_decoded =    508, tg =   2.53 t/s
0.05.000.000 I slot      release: id  3 | task 0 | stop processing: n_tokens = 1108, truncated = 0
"""
MISTRALRS = """\
2025-07-01T10:00:00.250000Z  INFO mistralrs_core::engine::logger: Throughput (T/s) 11.20, Prefix \
cache hitrate 25.00%, 2 running, 1 waiting
2025-07-01T10:00:05.250000Z  INFO mistralrs_core::engine::logger: Throughput (T/s) 20.00 (prefill \
15.00, decode 5.00), Prefix cache hitrate 50.00%, 3 running, 0 waiting
"""
TTXLA_SCHEDULER = """\
{"schema":1,"layer":"scheduler","ts":1790000000.25,"step":1,"num_running":1,"max_running":32,\
"num_waiting":2,"batch_util":0.0312,"kv_util":0.1,"num_free_blocks":90,"num_total_blocks":100,\
"prefill_new":1,"prefill_resumed":0,"prefill_partial":1,"running_scheduled":1,"preempted":0,\
"decode_gated":true,"decodes_displaced":3,"total_scheduled_tokens":160}
{"schema":1,"layer":"scheduler","ts":1790000000.5,"step":2,"num_running":2,"max_running":32,\
"num_waiting":3,"batch_util":0.0625,"kv_util":1.0,"num_free_blocks":0,"num_total_blocks":100,\
"prefill_new":0,"prefill_resumed":0,"prefill_partial":0,"running_scheduled":2,"preempted":1,\
"decode_gated":false,"decodes_displaced":0,"total_scheduled_tokens":2}
"""
TTXLA_RUNNER = """\
{"schema":1,"layer":"runner","event":"request_admitted","ts":1790000001.0,"step":0,\
"request_id":"a","slot":0,"prompt_len":9,"prefill_len":9,"readmission":false}
{"schema":1,"layer":"runner","event":"step","ts":1790000001.5,"step":1,"slots_occupied":3,\
"slots_free":5,"slots_total":8,"num_prefilling":1,"num_decoding":2,"prefill_passes":1,\
"decode_passes":1,"emitted_tokens":2,"step_dt_s":0.25,"decode_rate_toks_per_s":8.0}
{"schema":1,"layer":"runner","event":"request_completed","ts":1790000002.0,"step":1,\
"request_id":"a","slot":0,"prompt_len":9,"output_len":5}
"""
SERVING_SIM = """\
\u25b6 Starting simulation...
[1.0s] Avg prompt throughput: 8780.0 tokens/s, Avg generation throughput: 27.0 tokens/s
        \u251c\u2500Running Instance[0]: 9 reqs, Waiting: 2 reqs, Total # 1 NPUs, Each NPU Memory \
Usage 16462.51 MB (66.986 % Used), Prefix Cache Hit ratio 0.25 %, (3 / 9069)
        \u2514\u2500Node[0]: Total CPU Memory Usage 1.50 MB, 0.000 % Used
[2.5s] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 196.0 tokens/s
"""
LOGS = {
    "vllm": VLLM, "sglang": SGLANG, "atom": ATOM, "trtllm": TRTLLM, "statistics": STATISTICS,
    "llamacpp": LLAMACPP, "mistralrs": MISTRALRS, "ttxla-scheduler": TTXLA_SCHEDULER,
    "ttxla-runner": TTXLA_RUNNER, "servingsim": SERVING_SIM,
}  # fmt: skip


def open_log(folder: Path, text: str | bytes) -> Trace:
    """Open a log as a user does, by its content."""
    file = folder / "server.txt"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return Trace.open(file)


def report_of(trace: Trace) -> ReadReport:
    """What the reader did."""
    assert trace.manifest.report is not None
    return trace.manifest.report


COUNTS = (
    "step", "kind", "num_prefill_reqs", "num_prefill_tokens", "num_decode_reqs",
    "num_decode_tokens",
)  # fmt: skip
"""What the tests of logs ask of a step."""


def at(year: int, *rest: int) -> int:
    moment = datetime(year, *rest, tzinfo=UTC)  # type: ignore[arg-type,misc]  # numbers, no timezone
    return round(moment.timestamp() * 1000) * 1_000_000
