"""A few lines of each list of requests that is read."""

from __future__ import annotations

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
AZURE = HEADER + "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
MOONCAKE = """\
{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}
{"timestamp": 27.5, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14], "more": 1}
"""
SERVING_SIM = """\
{"input_toks": 27369, "output_toks": 1626, "arrival_time_ns": 101537000}
{"input_toks": 1390, "output_toks": 527, "arrival_time_ns": 144370000, "more": 1}
"""
BRIX = """\
{"timestamp": 21, "requests": [{"Prompt Length": 909, "Output Length": 22, "prompt": "Here is"}]}
{"timestamp": 26.5, "requests": [{"Prompt Length": null, "Output Length": 7}]}
"""
MEASURED = """\
{"request_id": "bench-0", "input_toks": 2358, "output_toks": 531, "arrival_time": 1787267980.08, \
"queued_ts": 27536.5, "scheduled_ts": 27536.625, "first_token_ts": 27537.25, "last_token_ts": 27554}
{"request_id": "bench-1", "input_toks": 1034, "output_toks": 769, "queued_ts": 27537.0, \
"scheduled_ts": null, "first_token_ts": null, "last_token_ts": null}
"""
LISTS = (AZURE, MOONCAKE, SERVING_SIM, BRIX, MEASURED)
ARRIVAL = ("request", "event", "ts_ns", "prompt_len", "max_tokens")
