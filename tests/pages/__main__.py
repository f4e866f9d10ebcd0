"""Write docs/reference/ again: part of `make docs`."""

from __future__ import annotations

from tests.pages import write

write()
