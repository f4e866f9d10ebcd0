"""Windows of trace events as nobody wrote them, made of real events by changing their structure.

An event is a tree of JSON text: what is changed are its fields, keys, values and the space between
them, so that most of what comes out is still JSON, which changing bytes hardly ever gives.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.conftest import ROOT

MOST_EVENTS = 6
MOST_CHANGES = 4
EVENTS_OF_A_FILE = 40
SAMPLE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Tree:
    """JSON text: an object or array with its (key, value) or (None, value) pairs, or a scalar."""

    text: str = ""
    brackets: str = ""
    fields: tuple[tuple[str | None, Tree], ...] = ()


def leaf(text: str) -> Tree:
    """A scalar, or any other text that is to stand there."""
    return Tree(text)


def tree_of(value: object) -> Tree:
    """A decoded value as a tree."""
    if isinstance(value, dict):
        return Tree(
            "", "{}", tuple((json.dumps(key), tree_of(each)) for key, each in value.items())
        )
    if isinstance(value, list):
        return Tree("", "[]", tuple((None, tree_of(each)) for each in value))
    return leaf(json.dumps(value, ensure_ascii=False))


SCALARS = tuple(map(leaf, (
    "null", "true", "false", '""', '"null"', '"a"', '" "', '"1"', '"1.5"', '"-2"', '"1e3"',
    '"NaN"', "0", "-0", "0.0", "-0.0", "1", "-1", "12", "1.5", "-1.5", "0.0004", "0.0005",
    "1.00049999", "1e3", "1E3", "1e+3", "1.5e-3", "12.3456e1", "1.669783687352244e+15", "1e18",
    "1e19", "1e400", "4611686018427387", "4611686018427388", "4611686018427387.9",
    "9223372036854775807", "9223372036854775808", "123456789012345678", "1234567890123456789",
    "99999999999999999999", "1669783687352244.123456789", '"\\u0041"', '"\\n"',
    '"\\ud83d\\ude00"', '"\\ud800"', '"é"', '"\\"correlation\\": 5, "', '"{\\"a\\": 1}"', '"},{"',
    '"\\\\"', '"\\/"', '"x\\u0000y"', '"\x7f"', '"0x1f"', "[]", "{}", "[[]]", "NaN", "-Infinity",
    "nul", "01", "1.", ".5", "-", "+1", "1e", "tru", '"a\nb"', '"a\tb"', '"\\x"', "'a'", "",
)))  # fmt: skip
KEYS = (
    '"ph"', '"name"', '"cat"', '"pid"', '"tid"', '"ts"', '"dur"', '"id"', '"id2"', '"args"',
    '"bp"', '"s"', '""', '" "', '"Name"', '"names"', '"tS"', '"id3"', '"ph "', '"n\\u0061me"',
    '"\\u0070h"', '"t\\u0073"', '"arg\\u0073"', '"i\\u0064"', '"\\u0069d2"', '"é"', '"a\\"b"',
    '"a\\\\"', '"\\n"', '"correlation"', '"External id"', '"corr\\u0065lation"',
    '"x\\"correlation"', '"\\"correlation\\""', '"correlation "', '"correlation\\u0000"',
    '"External\\u0020id"', "ph", '"ph', "5", "null",
)  # fmt: skip
SPACES = ("", " ", "\n", "\n  ", "\r\n\t", "  ", "\t", "\n\n")
TORN = ("", ",", "}", "{", "]", "[", '"', "\\", ":", "\0", "\x0b", "é")


def real_events(folders: Sequence[Path] = ()) -> list[Tree]:
    """Events of the samples, and of the profiles in other folders: of each the first few kinds."""
    files = sorted((ROOT / "sample_traces").glob("*.json.gz"))
    files += [file for folder in folders for file in sorted(folder.glob("*.json.gz"))]
    return [tree_of(event) for file in files for event in _kinds(file)]


def _kinds(file: Path) -> Iterator[dict[str, object]]:
    """Events of a file that do not have the same keys as one before them."""
    with gzip.open(file, "rt", encoding="utf-8") as opened:
        found = json.load(opened)
    seen: set[tuple[str, ...]] = set()
    for event in found["traceEvents"] if isinstance(found, dict) else found:
        args = event.get("args") or {}
        keys = (event.get("ph", ""), *event, *(args if isinstance(args, dict) else ()))
        if keys not in seen and len(seen) < EVENTS_OF_A_FILE:
            seen.add(keys)
            yield event


class Windows:
    """An endless iterator of windows; the same seed gives the same ones."""

    def __init__(self, events: Sequence[Tree], seed: int) -> None:
        self._events = events
        self._random = Random(seed)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        """Events with commas between them, changed in one to four places."""
        random = self._random
        events = [random.choice(self._events) for _ in range(random.randint(1, MOST_EVENTS))]
        for _ in range(random.randint(1, MOST_CHANGES)):
            at = random.randrange(len(events))
            events[at] = self._changed(events[at])
            if random.random() < 0.1:
                events.append(events[at])
        spaces = random.choices(SPACES, k=3) if random.random() < 0.7 else ["", "", ""]
        text = f"{spaces[2]},{spaces[0]}".join(_written(event, spaces) for event in events)
        if random.random() < 0.05:
            at = random.randint(0, len(text))
            text = text[:at] + random.choice(TORN) + text[at + random.randint(0, 2) :]
        return text.encode("utf-8", "surrogatepass")

    def _changed(self, tree: Tree) -> Tree:
        """The tree with one change in it, here or further in."""
        random = self._random
        inner = [at for at, (_, value) in enumerate(tree.fields) if value.brackets]
        if inner and random.random() < 0.4:
            return self._at(tree, random.choice(inner), self._changed)
        change = random.choice((self._drop, self._keep_few, self._twice, self._rekey, self._value,
                                self._value, self._put, self._shuffle))  # fmt: skip
        return change(tree) if tree.fields else self._put(tree)

    def _at(self, tree: Tree, at: int, change: object) -> Tree:
        key, value = tree.fields[at]
        assert callable(change)
        return _with(tree, (*tree.fields[:at], (key, change(value)), *tree.fields[at + 1 :]))

    def _any(self, tree: Tree) -> int:
        return self._random.randrange(len(tree.fields))

    def _key(self, tree: Tree) -> str | None:
        return self._random.choice(KEYS) if tree.brackets == "{}" else None

    def _drop(self, tree: Tree) -> Tree:
        at = self._any(tree)
        return _with(tree, tree.fields[:at] + tree.fields[at + 1 :])

    def _keep_few(self, tree: Tree) -> Tree:
        few = self._random.randint(0, min(3, len(tree.fields)))
        return _with(tree, tuple(self._random.sample(tree.fields, few)))

    def _twice(self, tree: Tree) -> Tree:
        key, value = tree.fields[self._any(tree)]
        other = value if self._random.random() < 0.3 else self._some(value)
        at = self._random.randint(0, len(tree.fields))
        return _with(tree, (*tree.fields[:at], (key, other), *tree.fields[at:]))

    def _rekey(self, tree: Tree) -> Tree:
        at = self._any(tree)
        field = (self._key(tree), tree.fields[at][1])
        return _with(tree, (*tree.fields[:at], field, *tree.fields[at + 1 :]))

    def _value(self, tree: Tree) -> Tree:
        return self._at(tree, self._any(tree), self._some)

    def _put(self, tree: Tree) -> Tree:
        at = self._random.randint(0, len(tree.fields))
        field = (self._key(tree), self._some(tree))
        return _with(tree, (*tree.fields[:at], field, *tree.fields[at:]))

    def _shuffle(self, tree: Tree) -> Tree:
        return _with(tree, tuple(self._random.sample(tree.fields, len(tree.fields))))

    def _some(self, was: Tree) -> Tree:
        """Another value: a scalar, an object of odd keys, or what was there one level deeper."""
        random = self._random
        if random.random() < 0.8:
            return random.choice(SCALARS)
        if random.random() < 0.5:
            return Tree("", "[]", ((None, was),))
        keys = random.choices(KEYS, k=random.randint(1, 3))
        return Tree("", "{}", tuple((key, random.choice(SCALARS)) for key in keys))


def _with(tree: Tree, fields: tuple[tuple[str | None, Tree], ...]) -> Tree:
    return Tree(tree.text, tree.brackets or "{}", fields)


def _written(tree: Tree, spaces: Sequence[str]) -> str:
    if not tree.brackets:
        return tree.text
    before, around, behind = spaces
    fields = (
        _written(value, spaces)
        if key is None
        else f"{key}{around}:{around}{_written(value, spaces)}"
        for key, value in tree.fields
    )
    inside = f"{behind},{before}".join(fields)
    return f"{tree.brackets[0]}{before}{inside}{behind}{tree.brackets[1]}"
