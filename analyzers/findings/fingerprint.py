"""What a finding is about: the same from run to run, whenever and on whichever rank it occurs.

A finding is about its rule and its subject: the request or task, and the core group; the core
where nothing else is named. Times, steps, ranks and numbers in messages are left out, because they
move when anything before them takes a microsecond longer. Request ids that a server makes up anew
in each run stand for any request.
"""

from __future__ import annotations

import hashlib
import json
import re

from stepscope.analyzers.findings.finding import Finding

# A UUID, a run of 16 and more hexadecimal digits, with or without what stands around it, or eight
# behind a dash at the end, of which some are letters: vLLM appends these to ids that it is given.
_MADE_UP = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16,}"
    r"|(?<=-)(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8}$",
    re.IGNORECASE,
)


def subject(finding: Finding) -> tuple[tuple[str, str], ...]:
    """What a finding is about, as pairs: (("task", "7"), ("group", "2")); empty: the whole run."""
    request = stem(finding.request) if finding.request is not None else None
    named = {"request": request, "task": finding.task, "group": finding.group}
    known = tuple((kind, str(value)) for kind, value in named.items() if value is not None)
    if not known and finding.core is not None:
        return (("core", str(finding.core)),)
    return known


def stem(request: str) -> str:
    """What of a request's id is not made up anew in each run, with `*` for the rest."""
    return _MADE_UP.sub("*", request)


def fingerprint(finding: Finding) -> str:
    """Sixteen hexadecimal digits for the rule and the subject of a finding."""
    identity = json.dumps([finding.code, *subject(finding)])
    return hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()
