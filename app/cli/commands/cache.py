"""`stepscope cache`: what is kept of reading files, and where."""

from __future__ import annotations

import json

import click

from stepscope.app.printable import plain


@click.group(invoke_without_command=True)
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text",
              show_default=True, help="How to print it.")  # fmt: skip
@click.pass_context
def cache(ctx: click.Context, form: str) -> None:
    """Show what is kept of reading other programs' files, so that the next open is instant.

    STEPSCOPE_CACHE names another folder, or is `off`; STEPSCOPE_CACHE_BYTES is its size at most
    (the least recently used goes first). What is kept is read again when the file changes.
    """
    if ctx.invoked_subcommand:
        return
    from stepscope.ingest.storage.cache import FOLDER, users_cache

    if (found := users_cache()) is None:
        click.echo("null" if form == "json" else f"nothing is kept: {FOLDER} is off")
        return
    entries, why = found.entries(), found.unusable()
    num_bytes = sum(entry.num_bytes for entry in entries)
    if form == "json":
        told = {
            "folder": str(found.folder),
            "entries": len(entries),
            "bytes": num_bytes,
            "most_bytes": found.most_bytes,
            "unusable": why,
        }
        click.echo(json.dumps(told, indent=2))
        return
    click.echo(f"folder   {plain(str(found.folder))}")
    click.echo(f"entries  {len(entries):,}")
    click.echo(f"bytes    {num_bytes:,} of at most {found.most_bytes:,}")
    if why:
        click.echo(f"not used: {plain(why)}")


@cache.command()
def clear() -> None:
    """Drop all that is kept, but for what another process has open."""
    from stepscope.ingest.storage.cache import users_cache

    found = users_cache()
    num, num_bytes = found.clear() if found else (0, 0)
    left = len(found.entries()) if found else 0
    in_use = f"; {left:,} in use stay" if left else ""
    click.echo(f"dropped {num:,} entries, {num_bytes:,} bytes{in_use}")
