"""What the page shows from which a trace is opened: plain markup, a style and one script.

The fields are disabled until the script is there: a form that is sent before would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from stepscope.app.printable import plain
from stepscope.app.web.shades import declared

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>open a trace · stepscope</title>
<link rel="icon" href="data:,">
<style>{colours}</style>
<link rel="stylesheet" href="/open/assets/desk.css">
</head>
<body>
<main id="desk" aria-busy="false">
<h1>stepscope</h1>
<noscript><p>This page needs JavaScript. Without it, name the trace when you start
stepscope.</p></noscript>
<fieldset id="ways" disabled>
<form id="by-path"><label for="path">a file or folder on this machine</label>
<div class="line"><input id="path" type="text" autocomplete="off" spellcheck="false"
placeholder="run.trace, profile.json.gz, vllm.log …"><button type="submit">open</button></div>
</form>
<p id="drop" data-most="{bytes}">Drop a file here, or <label class="link">choose one<input id="file"
type="file" hidden></label>. It is copied to a folder that is gone when stepscope ends, up to
{most}.</p>
<div id="told" role="status"></div>
<progress id="progress" max="1" hidden></progress>
<h2>opened last</h2>
{recent}
</fieldset>
</main>
<script type="module" src="/open/assets/desk.js"></script>
</body>
</html>
"""
NONE = '<p class="muted">Nothing was opened before.</p>'


def recent_page(recent: Iterable[Path], most: int) -> str:
    """The page; a path is text, whatever it holds."""
    listed = "".join(_line(number, path) for number, path in enumerate(recent))
    shown = f'<ol id="recent">{listed}</ol>' if listed else NONE
    return PAGE.format(colours=declared(), most=_size(most), bytes=most, recent=shown)


def _size(most: int) -> str:
    return f"{most >> 30:,} GiB" if most >= 1 << 30 else f"{most:,} bytes"


def _line(number: int, path: Path) -> str:
    name, folder = (escape(plain(str(part))) for part in (path.name, path.parent))
    return (
        f'<li><button type="button" class="recent" data-number="{number}">'
        f'<b>{name}</b> <span class="muted">{folder}</span></button></li>'
    )
