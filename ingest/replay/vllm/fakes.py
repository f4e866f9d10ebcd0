"""What a scheduler of vLLM asks of the model, the grammar and the drafts, where there are none."""

from __future__ import annotations

from typing import Any


class FakeModel:
    """A model configuration of plain text generation: what it was not given, it says no to.

    Each version asks for something else; for a text model without frills the answer is no.
    """

    def __init__(self, **known: Any) -> None:
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class FakeGrammar:
    """A compiled grammar: it takes every token but of those requests that are said to end in it.

    `rejected` names these. Some versions ask the manager of grammars, others the grammar itself.
    """

    def __init__(self, rejected: set[str]) -> None:
        self._rejected = rejected

    def accept_tokens(self, request: str, _tokens: list[int]) -> bool:
        """Refuse the tokens of a request whose grammar refused them when it was recorded."""
        return request not in self._rejected

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """Leave drafts as they are: those that were dropped were never recorded."""
        return tokens

    def is_terminated(self) -> bool:
        """It never ends a request by itself."""
        return False

    def rollback(self, *_: Any) -> None:
        """Nothing to take back."""

    def reset(self) -> None:
        """Nothing to forget."""


class FakeStructuredOutput:
    """What hangs at a request with a grammar; `grammar` is None until it is compiled."""

    def __init__(self) -> None:
        self.grammar: Any = None
        self.reasoning_ended = True
        self.reasoning_parser_kwargs: Any = None

    @property
    def is_grammar_ready(self) -> bool:
        """Older schedulers ask here."""
        return self.grammar is not None


class FakeGrammars:
    """In the place of StructuredOutputManager: the requests in `rejected` are refused a token."""

    def __init__(self) -> None:
        self.rejected: set[str] = set()

    def accept_tokens(self, request: Any, _tokens: list[int]) -> bool:
        """Refuse the tokens of those whose grammar refused them when it was recorded."""
        return request.request_id not in self.rejected

    def validate_tokens(self, _request: Any, tokens: list[int]) -> list[int]:
        """Leave drafts as they are."""
        return tokens

    def should_advance(self, request: Any) -> bool:
        """Older schedulers ask whether the grammar is to be advanced."""
        return bool(request.use_structured_output)

    def trim_reasoning_for_advance(self, _request: Any, tokens: list[int]) -> list[int]:
        """Nobody reasons here: all tokens are the grammar's."""
        return tokens

    def grammar_bitmask(self, *_: Any) -> None:
        """No token is sampled here, so none is masked."""

    def should_fill_bitmask(self, *_: Any) -> bool:
        """No token is sampled here, so none is masked."""
        return False
