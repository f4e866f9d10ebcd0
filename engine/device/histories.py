"""What the steps so far have left of each request, its KV and its tokens, where tiles are known."""

from __future__ import annotations

from collections.abc import Iterable

from stepscope.engine.device.run import Contents
from stepscope.engine.device.tasks import Left
from stepscope.engine.device.tiles import digest_of


class Histories:
    """By request what is left, and what should be; of a request that never ran nothing is."""

    def __init__(self) -> None:
        self._left: dict[str, Left] = {}

    def given(self, requests: Iterable[str]) -> Left:
        """What tasks read that compute on all of `requests` together."""
        return _together(self._left[each] for each in requests if each in self._left)

    def add(self, requests: Iterable[str], contents: Contents) -> None:
        """Take what a step left of `requests`.

        One whose own history is right stays so where nothing was in the way in this very step:
        that others in the same tiles have a wrong one is no matter of its.
        """
        right = contents.left.right
        step = Left(contents.left.found if contents.is_spoilt else right, right)
        for each in requests:
            self._left[each] = _together([self._left.get(each, Left()), step])

    def of(self, request: str) -> Left | None:
        """What is left of a request; None where it never ran."""
        return self._left.get(request)


def _together(left: Iterable[Left]) -> Left:
    each = [one for one in left if one.right]
    if not each:
        return Left()
    return Left(digest_of(one.found for one in each), digest_of(one.right for one in each))
