"""`stepscope cache`: what is cached of files that were read, and where."""

from __future__ import annotations

import json

import click

from stepscope.app.printable import plain


@click.group(invoke_without_command=True)
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text",
              show_default=True, help="Output format.")  # fmt: skip
@click.pass_context
def cache(ctx: click.Context, form: str) -> None:
    """Show the cache of files that were read and of long runs that were debugged.

    It makes opening them again instant.

    STEPSCOPE_CACHE names the cache's folder, or is `off`. STEPSCOPE_CACHE_BYTES is the most that it
    may hold; the least recently used entry is dropped first. A file that has changed is read again.
    """
    if ctx.invoked_subcommand:
        return
    from stepscope.ingest.storage.cache import FOLDER, users_cache

    if (found := users_cache()) is None:
        click.echo("null" if form == "json" else f"there is no cache: {FOLDER} is off")
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
    """Delete every entry of the cache that no other process has open."""
    from stepscope.ingest.storage.cache import users_cache

    found = users_cache()
    num, num_bytes = found.clear() if found else (0, 0)
    left = len(found.entries()) if found else 0
    in_use = f"; {left:,} are in use and stay" if left else ""
    click.echo(f"deleted {num:,} entries, {num_bytes:,} bytes{in_use}")
