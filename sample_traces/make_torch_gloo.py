"""Make `torch_gloo_two_ranks/`: two ranks of a tensor-parallel decoder under torch.profiler.

    python sample_traces/make_torch_gloo.py

Needs the extra `torch`. Two processes meet over gloo on the loopback interface, one thread each.
In every step rank 0 broadcasts the tokens, each of two layers is summed by an all-reduce, and the
logits are gathered. From step 3 on rank 1 sleeps `LATE_S` before the first layer, so that rank 0
waits in that layer's all-reduce. Steps, tokens and collectives are the same in each run; times are
not.
"""

from __future__ import annotations

import gzip
import multiprocessing
import os
import re
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import torch
from torch import Tensor, distributed
from torch.profiler import ProfilerActivity, profile, record_function

OUT = Path(__file__).with_name("torch_gloo_two_ranks")
NUM_RANKS, NUM_LAYERS, WIDTH, VOCABULARY = 2, 2, 32, 64
BATCHES = ((1, 12, 0), (1, 20, 1), *((0, 0, 2),) * 4, (1, 7, 2), *((0, 0, 3),) * 7)
"""Prefilled requests, their tokens, and decoding requests of each step."""
LATE_STEPS, LATE_S = range(3, 15), 0.02


def step(rank: int, number: int, num_tokens: int, weights: list[Tensor]) -> None:
    """Run a batch: tokens from rank 0, a half of each layer, a half of the logits."""
    tokens = torch.arange(num_tokens) % VOCABULARY if rank == 0 else torch.zeros(num_tokens).long()
    distributed.broadcast(tokens, src=0)
    embedding, *layers, head = weights
    hidden = embedding[tokens]
    if rank == 1 and number in LATE_STEPS:
        time.sleep(LATE_S)
    for layer in layers:
        part = hidden @ layer @ layer.T
        distributed.all_reduce(part)
        hidden = torch.tanh(hidden + part)
    logits = hidden @ head
    distributed.all_gather([torch.empty_like(logits) for _ in range(NUM_RANKS)], logits)


def serve(rank: int, weights: list[Tensor]) -> None:
    """Run all batches, each with the tag that vLLM gives it."""
    for number, (num_prefills, num_prefilled, num_decodes) in enumerate(BATCHES, start=1):
        tag = (
            f"execute_context_{num_prefills}({num_prefilled})"
            f"_generation_{num_decodes}({num_decodes})"
        )
        with record_function(tag):
            step(rank, number, num_prefilled + num_decodes, weights)


def profiled(rank: int, folder: str, ready: Barrier) -> None:
    """Serve once to warm up and once under the profiler, and write the rank's profile.

    Both start to serve when the profiler of each is running: it takes a second to start.
    """
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    store = f"file://{folder}/store"
    distributed.init_process_group("gloo", store, rank=rank, world_size=NUM_RANKS)
    halves = [torch.randn(WIDTH, WIDTH // NUM_RANKS) / WIDTH for _ in range(NUM_LAYERS)]
    head = torch.randn(WIDTH, VOCABULARY // NUM_RANKS)
    weights = [torch.randn(VOCABULARY, WIDTH), *halves, head]
    with torch.inference_mode():
        serve(rank, weights)
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            ready.wait()
            serve(rank, weights)
    profiler.export_chrome_trace(f"{folder}/rank{rank}.json")
    distributed.destroy_process_group()


def make(out: Path) -> None:
    """Profile both ranks, and write a file for each into the folder."""
    out.mkdir(exist_ok=True)
    spawned = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ready = spawned.Barrier(NUM_RANKS)
        ranks = [
            spawned.Process(target=profiled, args=(rank, folder, ready))
            for rank in range(NUM_RANKS)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
        for number in range(NUM_RANKS):
            name = f"rank{number}.json"
            text = re.sub(
                r'"traceName": ".*?"', f'"traceName": "{name}"', Path(folder, name).read_text()
            )
            (out / f"{name}.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    make(OUT)
