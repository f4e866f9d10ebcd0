"""Files of formats whose programs do not run here, written by the descriptions that these publish.

Each is a few dozen records with numbers by chance, the same in each run. They are packed by the
standard library alone, so that what is read of them is held against what was written.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.ingest.real_files import shared_file

NUM_RECORDS = 40
Json = dict[str, Any]


def azure_csv(file: Path) -> None:
    """Write arrivals as the Azure LLM inference dataset has them.

    Source: https://github.com/Azure/AzurePublicDataset
    """
    chance = random.Random(1)
    moment = datetime(2023, 11, 16, 18, 15, 46)
    with file.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(["TIMESTAMP", "ContextTokens", "GeneratedTokens"])
        for _ in range(NUM_RECORDS):
            moment += timedelta(microseconds=chance.randrange(5_000_000))
            time = f"{moment:%Y-%m-%d %H:%M:%S.%f}0"
            rows.writerow([time, chance.randrange(1, 8_000), chance.randrange(1, 900)])


def mooncake_lines(file: Path) -> None:
    """Write arrivals as Mooncake's traces have them: https://github.com/kvcache-ai/Mooncake."""
    chance = random.Random(2)
    _lines(
        file,
        [
            {
                "timestamp": 3000 * number + chance.randrange(3000),
                "input_length": chance.randrange(1, 100_000),
                "output_length": chance.randrange(1, 2_000),
                "hash_ids": [0, *range(number, number + chance.randrange(9))],
            }
            for number in range(NUM_RECORDS)
        ],
    )


def serving_sim_workload(file: Path) -> None:
    """Write arrivals as LLMServingSim takes them."""
    chance = random.Random(3)
    _lines(
        file,
        [
            {
                "input_toks": chance.randrange(1, 30_000),
                "output_toks": chance.randrange(1, 2_000),
                "arrival_time_ns": 10**8 * number + chance.randrange(10**8),
                "input_tok_ids": [chance.randrange(32_000) for _ in range(3)],
            }
            for number in range(NUM_RECORDS)
        ],
    )


def aibrix_workload(file: Path) -> None:
    """Write arrivals as AIBrix's workload generator does, several in a line."""
    chance = random.Random(4)
    _lines(
        file,
        [
            {
                "timestamp": 500 * number,
                "requests": [
                    {
                        "Prompt Length": chance.randrange(1, 4_000),
                        "Output Length": chance.randrange(1, 400),
                        "prompt": "Here is",
                    }
                    for _ in range(chance.randrange(1, 4))
                ],
            }
            for number in range(NUM_RECORDS)
        ],
    )


def measured_requests(file: Path) -> None:
    """Write the times of requests that a vLLM served, as LLMServingSim's benchmark does."""
    chance = random.Random(5)
    measured: list[Json] = []
    for number in range(NUM_RECORDS):
        times = [27_536.0 + number]
        times += [times[0] + chance.randrange(1, 64) / 64]
        times += [times[1] + chance.randrange(1, 64) / 64]
        times += [times[2] + chance.randrange(1, 64)]
        names = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")
        lengths = {"input_toks": chance.randrange(9_000), "output_toks": chance.randrange(900)}
        measured.append(
            {"request_id": f"bench-{number}", **lengths, **dict(zip(names, times, strict=True))}
        )
    _lines(file, measured)


def samples_csv(file: Path) -> None:
    """Write measurements over time, a column each."""
    chance = random.Random(6)
    header = ["t", "prompt_throughput", "gen_throughput", "running", "waiting", "kv_cache_pct"]
    with file.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(header)
        for second in range(NUM_RECORDS):
            rates = [round(chance.uniform(0, 9_000), 1) for _ in range(2)]
            counts = [chance.randrange(64) for _ in range(2)]
            rows.writerow([second / 2, *rates, *counts, round(chance.uniform(0, 100), 2)])


def vllm_log(file: Path) -> None:
    """Write the intervals that vLLM logs, and lines that it logs between them.

    Source: `vllm/v1/metrics/loggers.py`, `vllm/v1/spec_decode/metrics.py`
    """
    chance = random.Random(7)
    prefix = "(APIServer pid=1) INFO 03-04 {:%H:%M:%S} [{}] "
    moment = datetime(2000, 3, 4, 23, 50)
    lines = [prefix.format(moment, "api_server.py:1") + "vLLM API server version 0.27.1"]
    for _ in range(NUM_RECORDS):
        moment += timedelta(seconds=10)
        rates = [chance.uniform(0, 900) for _ in range(2)]
        lines += [
            prefix.format(moment, "loggers.py:9")
            + f"Engine 000: Avg prompt throughput: {rates[0]:.1f} tokens/s, "
            f"Avg generation throughput: {rates[1]:.1f} tokens/s, "
            f"Running: {chance.randrange(32)} reqs, Waiting: {chance.randrange(32)} reqs, "
            f"GPU KV cache usage: {chance.uniform(0, 100):.1f}%, "
            f"Prefix cache hit rate: {chance.uniform(0, 100):.1f}%",
            prefix.format(moment, "metrics.py:96")
            + f"SpecDecoding metrics: Mean acceptance length: {chance.uniform(1, 4):.2f}, "
            f"Accepted throughput: {rates[0]:.2f} tokens/s, "
            f"Drafted throughput: {rates[1]:.2f} tokens/s, "
            f"Accepted: {chance.randrange(900)} tokens, Drafted: {chance.randrange(900)} tokens, "
            f"Per-position acceptance rate: {chance.random():.3f}, {chance.random():.3f}, "
            f"Avg Draft acceptance rate: {chance.uniform(0, 100):.1f}%",
            '(APIServer pid=1) INFO:     127.0.0.1:5 - "POST /v1/completions HTTP/1.1" 200 OK',
        ]
    file.write_text("\n".join(lines) + "\n")


def sglang_log(file: Path) -> None:
    """Write the batches that SGLang logs: `sglang/srt/managers/scheduler_metrics_mixin.py`."""
    chance = random.Random(8)
    moment = datetime(2026, 3, 4, 23, 50)
    lines = [f"[{moment:%Y-%m-%d %H:%M:%S}] server_args=ServerArgs(model_path='m', tp_size=1)"]
    for _ in range(NUM_RECORDS):
        moment += timedelta(seconds=chance.randrange(3))
        begin = f"[{moment:%Y-%m-%d %H:%M:%S} TP0] "
        running, queued = chance.randrange(9), chance.randrange(9)
        usage = f"token usage: {chance.random():.2f}"
        if chance.random() < 0.3:
            lines.append(
                f"{begin}Prefill batch, #new-seq: {chance.randrange(1, 5)}, "
                f"#new-token: {chance.randrange(1, 8_193)}, #cached-token: 0, {usage}, "
                f"#running-req: {running}, #queue-req: {queued}, "
            )
        else:
            lines.append(
                f"{begin}Decode batch, #running-req: {running}, #token: {chance.randrange(9_000)}, "
                f"{usage}, cuda graph: True, gen throughput (token/s): "
                f"{chance.uniform(1, 99):.2f}, #queue-req: {queued}, "
            )
    file.write_text("\n".join(lines) + "\n")


def serving_sim_log(file: Path) -> None:
    """Write the intervals that LLMServingSim prints."""
    chance = random.Random(9)
    lines = ["\u25b6 Starting simulation..."]
    for second in range(NUM_RECORDS):
        lines += [
            f"[{second}.5s] Avg prompt throughput: {chance.uniform(0, 900):.1f} tokens/s, "
            f"Avg generation throughput: {chance.uniform(0, 900):.1f} tokens/s",
            f"        ├─Running Instance[0]: {chance.randrange(9)} reqs, "
            f"Waiting: {chance.randrange(9)} reqs, Total # 1 NPUs, Each NPU Memory Usage "
            f"{chance.uniform(1, 99):.2f} MB ({chance.uniform(1, 99):.3f} % Used)",
            "",
        ]
    file.write_text("\n".join(lines))


def trtllm_statistics(file: Path) -> None:
    """Write the iterations that TensorRT-LLM's `/metrics` answers, a list of them.

    Source: https://nvidia.github.io/TensorRT-LLM, "Performance statistics"
    """
    chance = random.Random(10)
    iterations = [
        {
            "iter": number,
            "iterLatencyMS": chance.randrange(1, 9_000) / 64,
            "timestamp": f"07-15-2025 06:30:{number:02}.123456",
            "numActiveRequests": chance.randrange(9),
            "numQueuedRequests": chance.randrange(9),
            "inflightBatchingStats": {
                "numScheduledRequests": 3,
                "numContextRequests": chance.randrange(1, 5),
                "numGenRequests": chance.randrange(5),
                "numCtxTokens": chance.randrange(1, 9_000),
            },
        }
        for number in range(NUM_RECORDS)
    ]
    file.write_text(json.dumps(iterations))


def _lines(file: Path, rows: list[Json]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


WRITTEN: dict[str, Callable[[Path], None]] = {
    "azure_conv.csv": azure_csv,
    "mooncake_conversation_trace.jsonl": mooncake_lines,
    "llmservingsim_workload.jsonl": serving_sim_workload,
    "aibrix_5s_workload.jsonl": aibrix_workload,
    "llmservingsim_vllm_requests.jsonl": measured_requests,
    "llmservingsim_vllm_timeseries.csv": samples_csv,
    "vllm_dgx_spark.log": vllm_log,
    "sglang_int4_dgx_spark.log": sglang_log,
    "llmservingsim_sim.log": serving_sim_log,
    "trt_metrics.json": trtllm_statistics,
}
"""What writes a file of the same format as the real one of that name."""


ORIGINS = ("written", "real")


def from_origin(origin: str, folder: Path, name: str) -> Path:
    """Return the real file of ../shared, or one of the same format that is written to `folder`."""
    if origin == "real":
        return shared_file(name)
    file = folder / Path(name).name
    WRITTEN[file.name](file)
    return file
