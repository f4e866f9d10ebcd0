"""Lines that engines write about themselves, from which tests build their logs."""

from __future__ import annotations

from pathlib import Path

from stepscope.ingest.trace import Trace


def vllm(second: int, running: int, waiting: int, usage: float, *, engine: int = 0) -> str:
    """An interval line of vLLM."""
    return (
        f"(APIServer pid=7) INFO 03-11 06:{second // 60:02}:{second % 60:02} [loggers.py:257] "
        f"Engine {engine:03}: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 9.3 "
        f"tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: "
        f"{usage}%, Prefix cache hit rate: 66.0%"
    )


def busy(second: int, running: int, waiting: int, usage: float) -> str:
    """An interval line of vLLM in which prompts were worked on."""
    return vllm(second, running, waiting, usage).replace(
        "prompt throughput: 0.0", "prompt throughput: 812.5"
    )


def prefill(second: int, running: int, waiting: int, usage: float) -> str:
    """A line of a prefill batch of SGLang."""
    return (
        f"[2026-09-13 16:{second // 60:02}:{second % 60:02} TP0] Prefill batch, #new-seq: 1, "
        f"#new-token: 8192, #cached-token: 0, token usage: {usage}, #running-req: {running}, "
        f"#queue-req: {waiting}"
    )


def sglang(second: int, running: int, waiting: int, usage: float, *, rank: str = "TP0") -> str:
    """A line of a decode batch of SGLang."""
    return (
        f"[2026-09-13 16:{second // 60:02}:{second % 60:02} {rank}] Decode batch, #running-req: "
        f"{running}, #token: 81316, token usage: {usage}, cuda graph: True, gen throughput "
        f"(token/s): 2663.43, #queue-req: {waiting}"
    )


def retraction(second: int, num_reqs: int = 1) -> str:
    """A line of SGLang's when its KV pool is full."""
    return (
        f"[2026-09-13 16:{second // 60:02}:{second % 60:02} TP0] KV cache pool is full. Retract "
        f"requests. #retracted_reqs: {num_reqs}, #new_tokens_gained: 646, #new_token_ratio: 0.0980 "
        "-> 0.3487"
    )


def prefill_server(second: int, handshake: int, inflight: int) -> str:
    """A line of an SGLang server that prefills and sends the KV to another."""
    return (
        f"[2026-04-15 17:{second // 60:02}:{second % 60:02} TP0] Prefill batch, #new-seq: 1, "
        "#new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, "
        f"#prealloc-req: {handshake}, #inflight-req: {inflight}, input throughput (token/s): 1.00, "
    )


def decode_server(second: int, prealloc: int, transfer: int) -> str:
    """A line of an SGLang server that gets the KV of prompts from another."""
    return (
        f"[2026-04-15 17:{second // 60:02}:{second % 60:02} TP0] Decode batch, #running-req: 10, "
        "#token: 512, token usage: 0.85, pre-allocated usage: 0.10, "
        f"#prealloc-req: {prealloc}, #transfer-req: {transfer}, #queue-req: 0, gen throughput "
        "(token/s): 1500.5"
    )


def log_of(folder: Path, *lines: str) -> Trace:
    """Open a log of these lines."""
    file = folder / "server.log"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Trace.open(file)
