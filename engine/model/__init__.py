"""A real decoder, small enough to read: the same parts as a large one, with weights from a seed.

Read it in this order.

- `decoder_config.py`: the sizes. `ModelConfig()` is two layers of width 64.
- `decoder.py`: embedding, layers, logits. A layer is norm, attention, norm, MLP or experts.
- `layers/tokenwise.py`: RMSNorm, rotary positions (RoPE), SwiGLU.
- `layers/attention.py`: grouped-query attention over a long history in chunks that are merged by
  their log-sum-exp; `layers/partials.py` has the arithmetic of it, `layers/history.py` the
  compressed history.
- `cache/kv_cache.py`: keys and values in blocks, found through a block table.
- `cache/inputs.py`: what one forward pass takes: token ids, positions, where their KV goes, row
  lengths.
- `layers/recurrent.py`: a state of fixed size instead of a history; `cache/memory.py` keeps it, by
  slot.
- `layers/moe.py`: a router, and experts behind the Protocol `Experts`, so that ranks may share
  them.
- `sampler.py`: the greedy token, and a digest of the logits. `drafts.py`: guesses of what follows.
- `solo.py`: the reference: one request by itself, dense and without a cache.
- `numpy_decoder.py`: the decoder once more, with the same weights, for where there is no torch.

    decoder = Decoder(ModelConfig(num_experts=4))
    cache = KVCache(decoder.config, num_blocks=8, block_size=16)
    rows = [RowTokens([5, 9, 3], 0, [0]), RowTokens([7, 7], 0, [3])]      # prompts, block tables
    hidden = decoder(ModelInput.of(cache, rows, is_prefill=True), cache)  # [5, hidden_size]
    logits = decoder.logits(hidden[[2, 4]])                               # the last token of each

Why everything is float64: a request's tokens must not depend on who shares its batch, and no sum of
floating-point numbers is the same in another order, as another batch size, chunk or page makes it.
In float64 two orders differ by some 1e-14, and the two largest logits by much more, so that the
greedy token is the same; `sampler.margin` is by how much, and a test looks at it. Float32 differs
by 1e-6, which a long enough output finds. The model is small, so the price is small too.

Importing this package imports no torch; its modules do, but for `decoder_config`, `drafts`,
`numpy_decoder`, `sampler`, `stream`, and of the cache `memory` and `row_tokens`.
"""

from __future__ import annotations

import os

from stepscope.ingest.errors import MissingExtra


def require_torch() -> None:
    """Raise MissingExtra, which names the command that installs it, where there is no torch."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # its profiler says on stderr that it starts
    try:
        import torch  # noqa: F401, PLC0415 - torch is an extra, and takes a second to import
    except ImportError as missing:
        if missing.name != "torch":
            raise
        todo = "pip install 'stepscope[torch]'"
        raise MissingExtra("the model needs PyTorch", todo=todo) from missing
