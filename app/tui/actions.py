"""Everything a key can do, in one place each: key bindings, footer and help are made from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from textual.binding import Binding

from stepscope.app.present.tab import Tab, numbered
from stepscope.app.timeline.keymap import EVERYWHERE as SHARED
from stepscope.app.timeline.keymap import FLAGS, RECORDING, Key


@dataclass(frozen=True, slots=True)
class Action:
    """Something that the user can do: `name` is the method, without its `action_` prefix.

    `keys` are Textual's names; `shown` is how the footer and the help write them. Actions next to
    each other with the same `hint` share one entry in the footer.
    """

    name: str
    keys: str
    shown: str
    help: str
    hint: str = ""


def actions(*rows: tuple[str, ...]) -> tuple[Action, ...]:
    """Actions by what each of their fields is, in order."""
    return tuple(Action(*row) for row in rows)


SCROLLS = actions(
    ("scroll(3)", "J,pagedown", "J", "scroll the text down"),
    ("scroll(-3)", "K,pageup", "K", "scroll the text up"),
)
TEXTUAL = {
    ",": "comma",
    ".": "full_stop",
    "/": "slash",
    "?": "question_mark",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "{": "left_curly_bracket",
    "}": "right_curly_bracket",
    "ArrowDown": "down",
    "ArrowLeft": "left",
    "ArrowRight": "right",
    "ArrowUp": "up",
    "End": "end",
    "Escape": "escape",
    "Home": "home",
}
"""Textual's names of the keys that a browser calls otherwise."""
CALLED = {
    "next-finding": "finding(1)",
    "previous-finding": "finding(-1)",
    "next-step": "step(1)",
    "previous-step": "step(-1)",
    "next-flag": "next_flag(1)",
    "previous-flag": "next_flag(-1)",
}
"""The application's methods for actions of the keymap, where they are not called as these."""
IN_FOOTER = ("zoom", "pan", "lane", "span", "mark", "pin", "finding", "step", "search", "help")


def textual(key: str) -> str:
    """Textual's name of a key of the keymap."""
    return TEXTUAL.get(key, key)


def of_keymap(keys: Sequence[Key], name: Callable[[str], str]) -> tuple[Action, ...]:
    """Actions of the keymap, as Textual binds them; `name` gives the method of each."""
    return tuple(
        Action(
            name(key.action),
            ",".join(map(textual, key.keys)),
            " ".join(each for each in key.keys if len(each) == 1) or key.keys[0][:3],
            key.says,
            key.group if key.group in IN_FOOTER else "",
        )
        for key in keys
    )


def _called(action: str) -> str:
    return CALLED.get(action, action)


_GOING = (
    *of_keymap([key for key in SHARED if key.group not in ("clear", "help")], _called),
    *of_keymap(RECORDING, _called),
    *of_keymap(FLAGS, _called),
    *actions(
        ("search('step ')", "colon", ":", "go to a step by its number"),
        ("open_another", "O", "O", "open another trace"),
        ("request_here", "r", "r", "the page of the request that is in question"),
    ),
)
_ENDING = (
    *of_keymap([key for key in SHARED if key.group in ("clear", "help")], _called),
    *actions(("quit", "q", "q", "quit", "quit")),
)


def everywhere(tabs: Sequence[Tab]) -> tuple[Action, ...]:
    """What can be done on every page: to go to findings, steps and names, to open each page."""
    opening = [(f"page('{tab.name}')", key, key, tab.says, "page") for key, tab in numbered(tabs)]
    return (*_GOING, *actions(*opening), *_ENDING)


def bindings(of: Sequence[Action]) -> list[Binding]:
    """Textual's key bindings for actions."""
    return [Binding(action.keys, action.name, action.help) for action in of]


@dataclass(frozen=True, slots=True)
class Hint:
    """An entry of the footer: the keys as shown, what they do, the action a click runs."""

    keys: str
    label: str
    action: str


def hints(own: Sequence[Action], shared: Sequence[Action]) -> Iterator[Hint]:
    """The footer of a page: its own actions first, then those that work everywhere."""
    named = [
        *((each, "focused") for each in own if each.hint),
        *((each, "app") for each in shared if each.hint),
    ]
    for label in dict.fromkeys(each.hint for each, _ in named):
        group = [each for each in named if each[0].hint == label]
        keys = [each.shown.split()[0] for each, _ in group]
        shown = f"{keys[0]}-{keys[-1]}" if label == "page" else " ".join(keys)
        yield Hint(shown, label, _target(*group[0]))


def _target(action: Action, owner: str) -> str:
    """The action as a click runs it: on the application, or on the page, which has the focus."""
    return action.name if action.name.startswith("app.") else f"{owner}.{action.name}"
