"""Everything a key can do, in one place each: key bindings, footer and help are made from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual.binding import Binding

from stepscope.app.present.tab import Tab, numbered


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
_GOING = actions(
    ("finding(1)", "n", "n", "next finding, in the timeline", "finding"),
    ("finding(-1)", "N", "N", "previous finding", "finding"),
    ("step(-1)", "left_square_bracket", "[", "previous step", "step"),
    ("step(1)", "right_square_bracket", "]", "next step", "step"),
    ("search('step ')", "colon", ":", "go to a step by its number"),
    ("search", "slash", "/", "find a request, task, core or step", "search"),
)
_ENDING = actions(
    ("clear", "escape", "Esc", "clear the mark, the selection, the filter"),
    ("help", "question_mark", "?", "this help", "help"),
    ("quit", "q", "q", "quit", "quit"),
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
