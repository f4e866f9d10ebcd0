"""What every request has said so far: only an executor that computes knows the tokens."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.engine.requests.content import prompt_tokens
from stepscope.engine.requests.request import Request


class Streams:
    """Prompts, made up from the requests' names, and outputs by request id."""

    def __init__(self, vocab_size: int) -> None:
        self.outputs: dict[str, list[int]] = {}
        self._vocab_size = vocab_size
        self._prompts: dict[str, list[int]] = {}

    def prompt(self, request: Request) -> list[int]:
        """Return the prompt's tokens."""
        if request.id not in self._prompts:
            self._prompts[request.id] = prompt_tokens(request, self._vocab_size)
        return self._prompts[request.id]

    def tokens(self, request: Request, first: int, num_tokens: int) -> list[int]:
        """Return `num_tokens` tokens from position `first`; 0 stands where none is known."""
        known = self.prompt(request) + self.outputs.get(request.id, [])
        found = known[first : first + num_tokens]
        return found + [0] * (num_tokens - len(found))

    def known(self, request: Request) -> list[int]:
        """Return the tokens that the engine counts, known to the host or not."""
        return self.tokens(request, 0, request.num_tokens)

    def put(self, request: Request, tokens: Sequence[int], place: int = 0) -> None:
        """Take the tokens `place` behind those that the engine counts.

        Those that were there already, which a preemption threw away, are replaced.
        """
        outputs = self.outputs.setdefault(request.id, [])
        outputs[next_number(request) - 1 + place :] = tokens


def next_number(request: Request) -> int:
    """Return the number of the request's next output token, from 1."""
    return request.num_tokens - request.prompt_len + 1
