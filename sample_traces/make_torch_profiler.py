"""Make `torch_profiler_cpu.json.gz`: a small decoder serving eight requests under torch.profiler.

    python sample_traces/make_torch_profiler.py

Needs the extra `torch`. A transformer layer with random weights runs on the CPU: chunked prefill,
decodes first, at most `MAX_ROWS` requests and `TOKEN_BUDGET` tokens a step. Each step is one
`record_function` with the tag that vLLM gives it, `execute_context_R(T)_generation_R(T)`. Times
differ from run to run; steps, rows and tokens do not.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as all of torch's own pages call it
from torch.profiler import ProfilerActivity, profile, record_function

OUT = Path(__file__).with_name("torch_profiler_cpu.json.gz")
VOCABULARY, WIDTH, HEADS, LAYERS = 256, 64, 4, 1
TOKEN_BUDGET, MAX_ROWS = 32, 4
PROMPT_LENGTHS = (24, 9, 40, 17, 5, 33, 12, 28)
MAX_TOKENS = (6, 9, 5, 8, 10, 4, 7, 6)


@dataclass
class Request:
    """A prompt being served: its tokens, how many are computed, and their keys and values."""

    tokens: list[int]
    max_tokens: int
    num_computed: int = 0
    num_generated: int = 0
    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)

    @property
    def is_finished(self) -> bool:
        """Whether all its tokens are generated."""
        return self.num_generated == self.max_tokens


Batch = list[tuple[Request, int]]


class Layer(nn.Module):
    """Attention over each request's own cache, and a feed-forward network over all tokens."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index
        self.norm, self.ffn_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Tokens of the batch, [num_tokens, WIDTH], one layer further."""
        qkv = self.qkv(self.norm(hidden)).view(-1, 3, HEADS, WIDTH // HEADS)
        rows = qkv.split([num_tokens for _, num_tokens in batch])
        attended = [
            self.attend(request, row) for (request, _), row in zip(batch, rows, strict=True)
        ]
        hidden = hidden + self.out(torch.cat(attended))
        further: Tensor = hidden + self.down(F.silu(self.up(self.ffn_norm(hidden))))
        return further

    def attend(self, request: Request, row: Tensor) -> Tensor:
        """Attend from a request's new tokens to all its tokens, and cache the new ones."""
        query, key, value = row.permute(1, 2, 0, 3)
        if request.num_computed:
            key = torch.cat([request.keys[self.index], key], dim=1)
            value = torch.cat([request.values[self.index], value], dim=1)
        request.keys[self.index : self.index + 1] = [key]
        request.values[self.index : self.index + 1] = [value]
        positions = torch.arange(key.shape[1])
        seen = positions <= positions[-query.shape[1] :, None]
        attended: Tensor = F.scaled_dot_product_attention(query, key, value, attn_mask=seen)
        return attended.transpose(0, 1).reshape(-1, WIDTH)


class Decoder(nn.Module):
    """Embedding, layers, and logits for the last token of every row."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer(index) for index in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, batch: Batch) -> list[int]:
        """The likeliest next token of each row."""
        new = [request.tokens[request.num_computed :][:num] for request, num in batch]
        hidden = self.embedding(torch.tensor([token for row in new for token in row]))
        for layer in self.layers:
            hidden = layer(hidden, batch)
        last = torch.tensor([len(row) for row in new]).cumsum(0) - 1
        tokens: list[int] = self.head(self.norm(hidden[last])).argmax(-1).tolist()
        return tokens


def schedule(waiting: list[Request], running: list[Request]) -> Batch:
    """Rows of the next step: decodes, then prefills in chunks, as far as the budget goes."""
    while waiting and len(running) < MAX_ROWS:
        running.append(waiting.pop(0))
    batch: Batch = []
    budget = TOKEN_BUDGET
    for request in sorted(running, key=lambda request: request.num_generated == 0):
        num_tokens = min(budget, len(request.tokens) - request.num_computed)
        if num_tokens:
            batch.append((request, num_tokens))
            budget -= num_tokens
    return batch


def tag(batch: Batch) -> str:
    """Tell rows and tokens of the batch as vLLM does."""
    context = [num for request, num in batch if not request.num_generated]
    generation = [num for request, num in batch if request.num_generated]
    return (
        f"execute_context_{len(context)}({sum(context)})"
        f"_generation_{len(generation)}({sum(generation)})"
    )


def postprocess(batch: Batch, tokens: list[int]) -> None:
    """Count what was computed; a row that has computed all its tokens gets a new one."""
    for (request, num_tokens), token in zip(batch, tokens, strict=True):
        request.num_computed += num_tokens
        if request.num_computed == len(request.tokens):
            request.tokens.append(token)
            request.num_generated += 1


def serve(decoder: Decoder) -> None:
    """Serve all requests, step by step."""
    prompts = [torch.randint(VOCABULARY, (length,)) for length in PROMPT_LENGTHS]
    waiting = [
        Request(prompt.tolist(), num) for prompt, num in zip(prompts, MAX_TOKENS, strict=True)
    ]
    running: list[Request] = []
    while waiting or running:
        batch = schedule(waiting, running)
        with record_function(tag(batch)):
            tokens = decoder(batch)
        postprocess(batch, tokens)
        running = [request for request in running if not request.is_finished]


def main() -> None:
    """Serve once to warm up and once under the profiler, and keep the profile."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    decoder = Decoder()
    with torch.inference_mode(), tempfile.TemporaryDirectory() as folder:
        serve(decoder)
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            serve(decoder)
        file = Path(folder) / "profile.json"
        profiler.export_chrome_trace(str(file))
        text = re.sub(r'"traceName": ".*?"', f'"traceName": "{OUT.name}"', file.read_text())
    OUT.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
