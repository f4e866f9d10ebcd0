"""Puts what we want to know around what an engine calls, and keeps our failures from the engine."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import Any

from stepscope.ingest.errors import StepscopeError

log = logging.getLogger("stepscope")

CALLER = 2
"""So many frames above a function of ours that is called around one of the engine's stands the one
that called the engine's."""


def warn(message: str, error: Exception) -> None:
    """Log that something of ours failed: in a line where the error says why and what to do, as that
    of a folder that cannot be written; else with where in our code it was.
    """
    if isinstance(error, StepscopeError):
        log.warning("%s: %s", message, error)
    else:
        log.warning(message, exc_info=error)


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
        takes: Sequence[str] = (),
        *,
        before: Callable[..., None] | None = None,
        after: Callable[..., None] | None = None,
    ) -> None:
        """Call `before` with those of a function's arguments that it `takes`, and `after` with its
        result and them; where the owner is a class, with the object before all others.

        Takes are names of parameters: a function that lacks one is missing. One whose name ends in
        `?` is None where it is not there, or was not given.
        """
        if (original := self.find(owner, name, takes)) is None:
            return
        places = _places(original, ("self", *takes) if isinstance(owner, type) else takes)
        # Most arguments are given by their place, and ours are the first of them.
        is_leading = [at for _, at in places] == list(range(len(places)))
        count = len(places) if is_leading else sys.maxsize

        @wraps(original)
        def hooked(*args: Any, **kwargs: Any) -> Any:
            if self.is_stopped:
                return original(*args, **kwargs)
            given = args[:count] if len(args) >= count else _given(places, args, kwargs)
            if before is not None:
                try:
                    before(*given)
                except Exception as error:
                    self.stop(error)
            result = original(*args, **kwargs)
            if after is not None and not self.is_stopped:
                try:
                    after(result, *given)
                except Exception as error:
                    self.stop(error)
            return result

        setattr(owner, name, hooked)

    def instead(
        self,
        owner: Any,
        name: str,
        takes: Sequence[str],
        make: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        """Put what `make` makes of a function in its place: for what is called so often that one
        call less counts.

        It is given what the engine gives, first what it `takes` under these names; it calls the
        engine's own, and keeps failures of ours to `stop`.
        """
        if (original := self.find(owner, name, takes)) is None:
            return
        first = ("self", *takes) if isinstance(owner, type) else takes
        if [at for _, at in _places(original, first)] == list(range(len(first))):
            setattr(owner, name, wraps(original)(make(original)))
        else:
            self.missing.append(f"{_kind(owner)}.{name}({', '.join(takes)} first)")

    def find(self, owner: Any, name: str, takes: Sequence[str] = ()) -> Callable[..., Any] | None:
        """Give a function of an object by its name, or None: it is `missing` then."""
        if (lacking := lacks(owner, name, takes)) is None:
            found: Callable[..., Any] = getattr(owner, name)
            return found
        self.missing.append(f"{_kind(owner)}.{lacking}")
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
        warn("stepscope stopped recording: it failed itself", error)
        try:
            self._on_failure(error)
        except Exception:
            log.debug("stepscope could not say so in the trace", exc_info=True)


def _kind(owner: Any) -> str:
    name: str = owner.__name__ if hasattr(owner, "__name__") else type(owner).__name__
    return name


def lacks(owner: Any, name: str, takes: Sequence[str] = ()) -> str | None:
    """What an object does not have: a function's name, or `name(parameters that it lacks)`."""
    found = getattr(owner, name, None)
    if not callable(found):
        return name
    known = _parameters(found)
    if known is None:
        return None
    gone = [each for each in takes if not each.endswith("?") and each not in known]
    return f"{name}({', '.join(gone)})" if gone else None


def _parameters(function: Callable[..., Any]) -> list[str] | None:
    """Names of its parameters; None where it takes whatever it is given."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C, without a text of its signature
        return None
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return None
    return [each.name for each in parameters]


def _places(function: Callable[..., Any], takes: Sequence[str]) -> list[tuple[str, int]]:
    """By which name a parameter may be given, and in which place if not by its name."""
    names = [each.rstrip("?") for each in takes]
    known = _parameters(function)
    if known is None:
        known = names
    elif names[:1] == ["self"] and known:
        known = ["self", *known[1:]]
    return [(name, known.index(name) if name in known else sys.maxsize) for name in names]


def _given(
    places: Sequence[tuple[str, int]], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    return tuple(args[at] if at < len(args) else kwargs.get(name) for name, at in places)


def is_called_by(owner: Any, names: Collection[str]) -> bool:
    """Whether one of an object's own functions of these names is being called in this thread.

    It looks through all callers: for what is asked now and then, and not in each step.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in names and frame.f_locals.get("self") is owner:
            return True
        frame = frame.f_back
    return False


def engine_frame(name: str) -> Any:
    """The frame of the engine's that called what is hooked: that of `name` if it is near."""
    frame: Any = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith("stepscope."):
        frame = frame.f_back
    near = (frame, frame.f_back)
    return next((each for each in near if each and each.f_code.co_name == name), frame)
