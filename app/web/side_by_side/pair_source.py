"""Gives a page over two traces what it asks for by name: an alignment, and which of them is A."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from stepscope.app.live.words import Following
from stepscope.app.paired.alignments import Alignment, By, Who
from stepscope.app.paired.pair import Pair
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.side_by_side.loaded_pair import LoadedPair
from stepscope.app.web.source import Json, Source

EXCHANGED = "exchanged,"
"""What stands before an alignment where B is A."""
MOST_KEPT = 8


class PairSource(Source):
    """Any page may ask for any alignment; the latest few are kept."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._making = Lock()
        self._made: OrderedDict[str, LoadedPair] = OrderedDict()
        super().__init__(self._of(pair.first_alignment.spelled))
        self._on_disk = None

    def at(self, revision: object) -> LoadedTrace:
        """Both, as a page calls them."""
        return self._of(revision) if isinstance(revision, str) else self.now

    def asked_for(self, asked: Json) -> LoadedTrace:
        """Both, as a page asks for them."""
        return self.at(asked.get("align"))

    def news(self, following: Following) -> Json:
        """None: two are not followed, and what lies on the disk is not read again."""
        del following
        return {"revision": None, "told": [], "live": False, "checking": ""}

    def _of(self, key: str) -> LoadedPair:
        with self._making:
            if key not in self._made:
                pair = self._pair.swapped() if key.startswith(EXCHANGED) else self._pair
                alignment = aligned(pair, key.removeprefix(EXCHANGED))
                is_first = key == self._pair.first_alignment.spelled
                self._made[key] = LoadedPair(pair, alignment, key, is_first=is_first)
                if len(self._made) > MOST_KEPT:
                    self._made.popitem(last=False)
            self._made.move_to_end(key)
            return self._made[key]


def aligned(pair: Pair, spelled: str) -> Alignment:
    """The alignment that an address spells; as at first where there is none like it."""
    name, _, rest = spelled.partition(":")
    rank, _, request = rest.partition(":")
    who: Who | None = (
        (int(rank), request) if rank.isascii() and rank.isdecimal() and request else None
    )
    ways: dict[str, By] = {"time": "time", "step": "step", "request": "request"}
    found = pair.aligned(ways[name], who) if name in ways else ""
    return pair.first_alignment if isinstance(found, str) else found
