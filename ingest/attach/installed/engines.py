"""The engines that record themselves."""

from __future__ import annotations

from stepscope.ingest.attach.installed.offered import InstalledEngine
from stepscope.ingest.attach.installed.sglang import SGLANG
from stepscope.ingest.attach.installed.vllm import VLLM

ENGINES: tuple[InstalledEngine, ...] = (VLLM, SGLANG)
