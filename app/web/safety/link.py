"""A file that sends a browser on to the page.

The command line with which a browser is started can be read by every user of the machine, and the
address holds the token.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

MARKUP = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>stepscope</title>
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}"></head>
<body><a href="{address}">to the page</a></body></html>
"""


@contextmanager
def link_to(address: str) -> Iterator[str]:
    """Yield the address of a file that only its owner can read, and that is gone in the end."""
    with tempfile.TemporaryDirectory(prefix="stepscope-") as folder:
        file = Path(folder, "page.html")
        file.touch(0o600)
        file.write_text(MARKUP.format(address=escape(address)), encoding="utf-8")
        yield file.as_uri()
