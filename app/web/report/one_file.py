"""A page in one file, of which nothing is fetched: its head, and how its policy knows its parts."""

from __future__ import annotations

import base64
import hashlib

from stepscope.app.own_version import own_version

SHELL = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="stepscope {version}">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def one_file(title: str, policy: str, style: str, body: str) -> str:
    """The page. The title and the body, with its scripts, are markup already."""
    return SHELL.format(title=title, policy=policy, style=style, body=body, version=own_version())


def digest(content: str) -> str:
    """What a policy knows a script or a style by."""
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")
