"""Colours on the page, in dark and in light: custom properties that a style or a script names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dash import dcc
from dash.development.base_component import Component
from plotly import graph_objects as go

from stepscope.app import light

_PAINTED = re.compile(r'\b(fill|stroke)="(#[0-9A-Fa-f]{6})"')


def declared() -> str:
    """The rules that give every custom property its colour.

    The system says whether light or dark is wanted, unless `data-theme` says it; paper is light.
    """
    dark, bright = (_properties(is_light=each) for each in (False, True))
    return (
        f":root {{ {dark} }}\n"
        f"@media (prefers-color-scheme: light) {{ :root:not([data-theme=dark]) {{ {bright} }} }}\n"
        f":root[data-theme=light] {{ {bright} }}\n"
        f"@media print {{ :root:root:root {{ {bright} }} }}"
    )


def _properties(*, is_light: bool) -> str:
    named = {f"--{name}": of for name, of in light.surfaces(is_light=is_light).items()}
    shades = {_property(of): light.colour(of, is_light=is_light) for of in light.drawn()}
    scheme = f"color-scheme: {'light' if is_light else 'dark'};"
    return scheme + "".join(f"{name}: {of};" for name, of in {**named, **shades}.items())


def shade(of: str) -> str:
    """A colour of the palette as a style says it, so that it follows light and dark."""
    return f"var({_property(of)})"


def _property(of: str) -> str:
    return f"--shade-{of.removeprefix('#').lower()}"


def painted(svg: str) -> str:
    """A drawing of ours whose colours follow light and dark."""
    return _PAINTED.sub(lambda found: f'{found[1]}="{shade(found[2])}"', svg)


def has_charts(shown: Any) -> bool:
    """Whether there is a chart among components."""
    if isinstance(shown, (list, tuple)):
        return any(map(has_charts, shown))
    is_chart = isinstance(shown, dcc.Graph)
    return is_chart or (
        isinstance(shown, Component) and has_charts(getattr(shown, "children", None))
    )


def in_light(shown: Any) -> Any:
    """Components whose charts have the colours of a light ground; they are changed in place."""
    for each in shown if isinstance(shown, (list, tuple)) else [shown]:
        if isinstance(each, dcc.Graph):
            # Dash sets what it is given, and types none of it.
            vars(each)["figure"] = figure_in_light(vars(each)["figure"])
        elif isinstance(each, Component):
            in_light(getattr(each, "children", None))
    return shown


def figure_in_light(figure: go.Figure) -> dict[str, Any]:
    """A chart in the colours of a light ground; only what is a colour is looked at."""
    lighter: dict[str, Any] = _lighter(figure.to_plotly_json(), is_colour=False)
    return lighter


def _lighter(part: Any, *, is_colour: bool) -> Any:
    if isinstance(part, Mapping):
        return {
            name: _lighter(value, is_colour=is_colour or "color" in name)
            for name, value in part.items()
        }
    if isinstance(part, (list, tuple)):
        return [_lighter(value, is_colour=is_colour) for value in part]
    return light.colour(part, is_light=True) if is_colour and isinstance(part, str) else part
