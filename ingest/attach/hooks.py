"""Puts what we want to know around what an engine calls, and keeps our failures from the engine."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

log = logging.getLogger("stepscope")


class Hooks:
    """Wraps functions of an engine's objects by their names; what is not there is `missing`.

    What an engine's function returns or raises is untouched. The first failure of ours stops all
    of it: half a story would be taken for a whole one. It is logged once, and `on_failure` is
    called with it.
    """

    def __init__(self, on_failure: Callable[[Exception], None]) -> None:
        self.missing: list[str] = []
        self.is_stopped = False
        self._on_failure = on_failure

    def around(
        self,
        owner: Any,
        name: str,
        *,
        before: Callable[..., None] | None = None,
        after: Callable[..., None] | None = None,
    ) -> None:
        """Call `before` with a function's arguments, and `after` with its result and arguments."""
        if (original := self.find(owner, name)) is None:
            return

        @wraps(original)
        def hooked(*args: Any, **kwargs: Any) -> Any:
            if before is not None:
                self.safely(before, *args, **kwargs)
            result = original(*args, **kwargs)
            if after is not None:
                self.safely(after, result, *args, **kwargs)
            return result

        setattr(owner, name, hooked)

    def find(self, owner: Any, name: str) -> Callable[..., Any] | None:
        """Give a function of an object by its name, or None: it is `missing` then."""
        found: Callable[..., Any] | None = getattr(owner, name, None)
        if callable(found):
            return found
        kind = owner.__name__ if isinstance(owner, type) else type(owner).__name__
        self.missing.append(f"{kind}.{name}")
        return None

    def safely(self, act: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        """Call a function of ours, unless one has failed before."""
        if self.is_stopped:
            return
        try:
            act(*args, **kwargs)
        except Exception as error:
            self.stop(error)

    def stop(self, error: Exception) -> None:
        """Stop all of it, and say why."""
        self.is_stopped = True
        log.warning("stepscope stopped recording: it failed itself", exc_info=error)
        try:
            self._on_failure(error)
        except Exception:
            log.debug("stepscope could not say so in the trace", exc_info=True)
