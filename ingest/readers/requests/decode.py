"""Lines of published lists of requests: when each arrived, and how long prompt and output were.

- Azure's: CSV, `TIMESTAMP,ContextTokens,GeneratedTokens` (github.com/Azure/AzurePublicDataset,
  AzureLLMInferenceTrace); times are UTC, to a tenth of a microsecond;
- Mooncake's: a JSON object a line, `{"timestamp": ms, "input_length": .., "output_length": ..,
  "hash_ids": [..]}`, where an id names 512 tokens of the prompt (github.com/kvcache-ai/Mooncake);
- LLMServingSim's workloads: `{"input_toks": .., "output_toks": .., "arrival_time_ns": ..}`; and
  what its benchmark measured of vLLM, `{"request_id": "..", "input_toks": .., "output_toks": ..,
  "arrival_time": s, "queued_ts": s, "scheduled_ts": s, "first_token_ts": s, "last_token_ts": s}`,
  where the last four are of the engine's monotonic clock (github.com/casys-kaist/LLMServingSim);
- AIBrix's workloads: requests that come together, `{"timestamp": ms, "requests": [{"Prompt Length":
  .., "Output Length": .., "prompt": ".."}]}` (github.com/vllm-project/aibrix, `benchmarks`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct, field

BEYOND = "fields beyond the header"
AZURE_FIELDS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class AzureRow(Struct):
    """A line of Azure's files; of its time, a tenth of a microsecond is lost."""

    arrived: datetime = field(name="TIMESTAMP")
    prompt_len: int = field(name="ContextTokens")
    max_tokens: int = field(name="GeneratedTokens")
    beyond: None = field(name=BEYOND, default=None)


class MooncakeRow(Struct):
    """A line of Mooncake's files."""

    timestamp: Annotated[float, Meta(ge=0, le=4e12)]
    input_length: int
    output_length: int
    hash_ids: tuple[Int64, ...] = ()


class ServingSimRow(Struct):
    """A line of LLMServingSim's workloads."""

    arrival_time_ns: int
    input_toks: int
    output_toks: int


class MeasuredRow(Struct):
    """A line of what LLMServingSim's benchmark measured; times in seconds."""

    request_id: str
    input_toks: int
    output_toks: int
    queued_ts: float
    scheduled_ts: float | None = None
    first_token_ts: float | None = None
    last_token_ts: float | None = None
    arrival_time: float | None = None


class BrixRequest(Struct):
    """A request of AIBrix's workloads; lengths are unknown until a tokenizer has told them."""

    prompt_len: int | None = field(name="Prompt Length", default=None)
    max_tokens: int | None = field(name="Output Length", default=None)


class BrixRow(Struct):
    """A line of AIBrix's workloads."""

    timestamp: Annotated[float, Meta(ge=0, le=4e12)]
    requests: list[BrixRequest]


def is_azure(head: bytes) -> bool:
    """Tell by the header."""
    return b"ContextTokens" in head.partition(b"\n")[0]


def is_mooncake(head: bytes) -> bool:
    """Tell by the first line."""
    return b'"input_length"' in head.partition(b"\n")[0]


def request_name(number: int) -> str:
    """What the n-th request, from 0, is called: neither says."""
    return f"req-{number:02d}"
