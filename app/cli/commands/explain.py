"""`stepscope explain`: a rule's page."""

from __future__ import annotations

import sys

import click


@click.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Show the page of the rule CODE (such as COR001), or list every rule.

    The page says what the rule finds, why it hurts, an example, and how to fix it.
    """
    from stepscope.analyzers.check.explain import explain as page_of
    from stepscope.analyzers.check.registry import by_family, usable_rules

    if code is None:
        for rule in by_family(usable_rules()):
            click.echo(f"{rule.code}  {rule.severity:<8} {rule.name}")
        return
    page = page_of(code)
    if not sys.stdout.isatty():
        click.echo(page)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=min(100, Console().width)).print(Markdown(page))
