"""What vLLM loads in every process of its own: an entry point of `vllm.general_plugins`.

Where `STEPSCOPE_TRACE` is not set, it looks that up and does nothing else.
"""

from __future__ import annotations

import os


def register() -> None:
    """Record the schedulers of this process, where `STEPSCOPE_TRACE` names a directory."""
    if os.environ.get("STEPSCOPE_TRACE"):
        from stepscope.ingest.attach.vllm.attaching import watch  # noqa: PLC0415 - when it is asked for

        watch()
