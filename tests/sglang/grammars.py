"""A grammar backend of SGLang's own that compiles as late as a test wants.

SGLang compiles grammars in threads of its own, and asks each time it forms a batch who is done. A
large JSON schema takes seconds; here a grammar is compiled when so many batches have been formed.
"""

# ruff: noqa: PLC0415 - what is SGLang's is imported when its plug-ins can be hooked
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

SPECIAL = ("<pad>", "<s>", "</s>")


def tokenizer(num_tokens: int) -> Any:
    """A tokenizer of as many tokens, each a byte but the first three."""
    names = dict(zip(("pad_token", "bos_token", "eos_token"), SPECIAL, strict=True))
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())[: num_tokens - len(SPECIAL)]
    made = Tokenizer(models.BPE({each: at for at, each in enumerate((*SPECIAL, *letters))}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


def late_backend(
    requests: Sequence[dict[str, Any]], num_tokens: int, num_formed: Callable[[], int]
) -> Any:
    """SGLang's backend of llguidance, which has a grammar when its request says so."""
    from sglang.srt.constrained.llguidance_backend import GuidanceBackend

    compiled_at = {each["regex"]: each["compiled_at"] for each in requests if "regex" in each}

    class LateBackend(GuidanceBackend):  # type: ignore[misc]  # SGLang ships no types
        def dispatch_regex(self, regex: str) -> Any:
            while num_formed() < compiled_at[regex]:
                time.sleep(0.001)
            return super().dispatch_regex(regex)

    return LateBackend(tokenizer(num_tokens), n_vocab=num_tokens, eos_token_ids=[2])
