"""Ways to open two traces in the terminal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from stepscope.app.tui.both_app import BothApp
from stepscope.app.tui.widgets.prose import Prose
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.tui.stage import settle


def before_and_after(folder: Path) -> BothApp:
    return BothApp((Trace.open(folder / stories.BEFORE), Trace.open(folder / stories.AFTER)))


@asynccontextmanager
async def compared(app: BothApp, size: tuple[int, int]) -> AsyncIterator[Pilot[None]]:
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        yield pilot


def both_of(pilot: Pilot[None]) -> BothApp:
    app = pilot.app
    assert isinstance(app, BothApp)
    return app


def words(pilot: Pilot[None]) -> str:
    return " ".join(both_of(pilot).open_page.query_one(Prose).text.split())
