"""What a rank can compute its model with: one kind each for NumPy and for torch.

Both have the same weights and say the same; `RankModel` is what either of them makes. Adding
another one is one class and one line in `MODELS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Protocol

from stepscope.engine.named import named
from stepscope.engine.parallel.shares import numpy_model

if TYPE_CHECKING:
    from stepscope.engine.model.stream import Stream
    from stepscope.engine.parallel.shares.rank_model import RankModel


class ModelKind(Protocol):
    """What computes the model; `name` is as a configuration spells it."""

    name: str

    def computing(self) -> AbstractContextManager[None]:
        """Return what the ranks compute within; nothing by default."""
        return nullcontext()

    def made(
        self, seed: int, num_slots: int, slot_tokens: int, owned: Collection[int]
    ) -> RankModel:
        """Return a rank's model with the experts `owned`, and slots of so many tokens."""
        ...

    def alone(self, seed: int) -> Callable[..., Stream]:
        """Return what answers a request alone, without slots and other ranks: a `solo`."""
        ...


class InNumpy(ModelKind):
    """The decoder in NumPy."""

    name = "plain"

    def made(
        self, seed: int, num_slots: int, slot_tokens: int, owned: Collection[int]
    ) -> RankModel:
        """Return a decoder in NumPy."""
        return numpy_model.PlainModel(seed, num_slots, slot_tokens, owned)

    def alone(self, seed: int) -> Callable[..., Stream]:
        """Answer with the same decoder and all of its experts."""
        return partial(numpy_model.solo, seed)


class InTorch(ModelKind):
    """The decoder with torch, which is an extra: it is imported when it computes."""

    name = "torch"

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Let torch compute on one thread: the model is so small that more get in their way."""
        import torch  # noqa: PLC0415 - it is an extra

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def made(
        self, seed: int, num_slots: int, slot_tokens: int, owned: Collection[int]
    ) -> RankModel:
        """Return a decoder with torch."""
        from stepscope.engine.parallel.shares.torch_model import TorchModel  # noqa: PLC0415 - an extra

        return TorchModel(seed, num_slots, slot_tokens, owned)

    def alone(self, seed: int) -> Callable[..., Stream]:
        """Answer densely, and without a cache."""
        from stepscope.engine.model.solo import solo  # noqa: PLC0415 - torch is an extra
        from stepscope.engine.parallel.shares.torch_model import decoder_of  # noqa: PLC0415 - the same

        return partial(solo, decoder_of(seed))


PLAIN, TORCH = InNumpy(), InTorch()
MODELS: tuple[ModelKind, ...] = (PLAIN, TORCH)


def model_kind(name: str) -> ModelKind:
    """Return the kind of that name; ConfigError naming all of them for any other."""
    return named(name, MODELS, "model")
