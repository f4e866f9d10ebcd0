"""A file of a known format that is not read is refused with what it is and what to do instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.ingest.errors import UnknownFormat
from stepscope.ingest.trace import Trace
from tests.looped import looped

FILES = {
    "benchmark": ('{"mean_ttft_ms": 4, "request_throughput": 9}', "--save-detailed"),
    "benchmark of inputs": ('{"total_input_tokens": 4, "completed": 9}', "server's log"),
    "metrics": ("# HELP vllm:x y\n# TYPE vllm:x gauge\nvllm:x 1.0\n", "query_range"),
    "chakra": ('{"schema": "1.1.1-chakra.0.0.4", "nodes": []}', "torch.profiler"),
    "tensorrt": ("[09/04/2026-19:08:00] [TRT-LLM] [I] Starting the executor\n", "print_iter_log"),
    "tgi": ("2026-01-01T00:00:00Z  INFO text_generation_router: Connected\n", "profile"),
    "router": ("2026-01-01 00:00:00 [INFO] sglang_router: added worker 10.0.0.1\n", "engines"),
    "vllm": ("(APIServer pid=1) INFO 06-18 10:00:10 [api_server.py:9] vLLM API server\n"
             "INFO 06-18 10:00:10 [config.py:9] vllm config\n", "--disable-log-stats"),
    "sglang": ("[2026-08-10 09:00:00] server_args=ServerArgs(model='m')\n", "--log-level info"),
}  # fmt: skip


@looped("name", FILES)
def test_a_known_format_is_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    content, todo = FILES[name]
    file = tmp_path / "file"
    file.write_text(content)

    with pytest.raises(UnknownFormat) as refused:
        Trace.open(file)

    assert refused.value.todo is not None
    assert todo in refused.value.todo


def test_another_text_is_refused_with_the_formats_that_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("call me Ishmael\n")

    with pytest.raises(UnknownFormat) as refused:
        Trace.open(file)

    assert refused.value.todo is not None
    assert "formats that can be read" in refused.value.todo
