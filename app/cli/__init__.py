"""The `stepscope` command: one small file per group of subcommands."""

from __future__ import annotations

from stepscope.app.cli.main import main

__all__ = ["main"]
