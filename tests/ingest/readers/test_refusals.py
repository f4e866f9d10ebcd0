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
    "ollama": ('time=2026-07-21T16:05:17.322-07:00 level=INFO source=routes.go:1158 '
               'msg="Listening on 127.0.0.1:11434 (version 0.3.5)"\n'
               '[GIN] 2026/07/21 - 16:06:17 | 200 | 9.1s | 127.0.0.1 | POST "/api/chat"\n',
               "llama-server"),
    "lmdeploy": ("2026-04-11 04:15:17,172 - lmdeploy - INFO - async_engine.py:259 - input "
                 "backend=pytorch\n[TM][INFO] [Gemm2] 6144\n", "LMDEPLOY_PROFILE_CUDA"),
    "llama.cpp": ("build: 6123 (79c1160b) with cc for x86_64-linux-gnu\n"
                  "main: loading model\nsrv    load_model: loading model 'm.gguf'\n", "requests"),
    "tensorrt statistics": ('{"iterations": [{"iter": 3, "iter_latency_ms": 4.5, '
                            '"num_ctx_requests": 1, "num_gen_requests": 2}]}', "/metrics"),
    "triton statistics": ('{"Iteration Counter": 3, "Active Request Count": 4, '
                          '"Scheduled Requests": 1, "Total Context Tokens": 7}', "/metrics"),
    "jaeger empty": ('{"data": [], "total": 0, "limit": 0, "errors": null}', "lookback"),
    "jaeger error": ('{"data": null, "errors": [{"code": 404, "msg": "not found"}]}', "again"),
    "jaeger's v3 error": ('{"error": {"httpCode": 404, "message": "No traces found"}}', "again"),
    "tempo empty": ('{"batches": []}', "again"),
    "prometheus error": ('{"status": "error", "errorType": "bad_data", '
                         '"error": "exceeded maximum resolution"}', "query_range"),
    "prometheus empty": ('{"status": "success", "data": {"resultType": "matrix", "result": []}}',
                         "query_range"),
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


STARTING = "(EngineCore_DP0 pid=17) INFO 05-07 02:14:18 [core.py:58] Initializing vllm\n"
TRACEBACK = """\
(EngineCore_DP0 pid=17) ERROR 05-07 02:14:18 [core.py:396] EngineCore failed to start.
(EngineCore_DP0 pid=17) ERROR 05-07 02:14:18 [core.py:396] Traceback (most recent call last):
(EngineCore_DP0 pid=17) ERROR 05-07 02:14:18 [core.py:396]   File "core.py", line 387, in run
(EngineCore_DP0 pid=17) ERROR 05-07 02:14:18 [core.py:396] ValueError: No available memory.
(EngineCore_DP0 pid=17) Process EngineCore_DP0:
(EngineCore_DP0 pid=17) ValueError: No available memory.
(APIServer pid=1)   File "llm.py", line 5, in launch
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.
"""


@looped(("content", "error"), [
    (STARTING + TRACEBACK, "ValueError: No available memory."),
    (STARTING + "(APIServer pid=1) INFO 05-07 02:14:18 [a.py:1] waiting\n" * 2_000 + TRACEBACK,
     "ValueError: No available memory."),
    (STARTING + "ERROR 05-07 02:14:18 [utils.py:9] the port 8000 is taken\n",
     "the port 8000 is taken"),
    ("[2026-08-10 09:00:00] server_args=ServerArgs(model='m')\n"
     "[2026-08-10 09:00:09 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
     "  File \"scheduler.py\", line 1, in run\n"
     "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n",
     "RuntimeError: Not enough memory."),
    ('time=2026-07-21T16:05:17.322Z level=INFO source=routes.go:1158 msg="Listening"\n'
     'time=2026-07-21T16:05:18.322Z level=ERROR source=sched.go:9 msg="error loading llama '
     'server" error="no space"\n', 'msg="error loading llama server" error="no space"'),
    ("[09/04/2026-19:08:00] [TRT-LLM] [I] Starting\n"
     "[09/04/2026-19:08:01] [TRT-LLM] [E] Failed to initialize executor: no GPU\n",
     "Failed to initialize executor: no GPU"),
])  # fmt: skip
def test_a_log_without_reports_is_refused_with_the_last_error_of_the_engine(
    tmp_path: Path, content: str, error: str
) -> None:
    (tmp_path / "server.log").write_text(content)

    with pytest.raises(UnknownFormat) as refused:
        Trace.open(tmp_path / "server.log")

    assert error in refused.value.what
    assert "\n" not in str(refused.value)


def test_the_text_of_a_request_and_an_error_before_a_restart_are_no_last_error(
    tmp_path: Path,
) -> None:
    (tmp_path / "server.log").write_text(
        STARTING + "INFO 05-07 02:14:18 [logger.py:9] Received request: prompt: 'ValueError: x'\n"
    )

    with pytest.raises(UnknownFormat) as refused:
        Trace.open(tmp_path / "server.log")

    assert "ValueError" not in refused.value.what


@looped(("content", "text"), [
    ('{"data": null, "errors": [{"code": 404, "msg": "trace not found"}]}', "trace not found"),
    ('{"status": "error", "errorType": "bad_data", "error": "too many points"}', "too many points"),
    ('{"error": {"httpCode": 404, "message": "No traces found"}}', "No traces found"),
])  # fmt: skip
def test_an_error_of_an_api_is_refused_with_its_own_message(
    tmp_path: Path, content: str, text: str
) -> None:
    (tmp_path / "answer.json").write_text(content)

    with pytest.raises(UnknownFormat, match=text):
        Trace.open(tmp_path / "answer.json")


@looped("content", [
    '{"status": "success", "data": {"resultType": "matrix", "result": []}}',
    '{"status": "success", "data": {"resultType": "vector", "result": []}}',
    '{"status": "success", "data": {"resultType": "matrix", "result": '
    '[{"metric": {"__name__": "vllm:num_requests_running"}, "values": []}]}}',
    "# HELP vllm:x y\n# TYPE vllm:x gauge\n",
])  # fmt: skip
def test_an_answer_without_a_sample_is_not_called_a_scrape(tmp_path: Path, content: str) -> None:
    (tmp_path / "answer.json").write_text(content)

    with pytest.raises(UnknownFormat) as refused:
        Trace.open(tmp_path / "answer.json")

    assert "single scrape" not in refused.value.what
    assert "no sample" in refused.value.what


def test_another_text_is_refused_with_the_formats_that_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("call me Ishmael\n")

    with pytest.raises(UnknownFormat) as refused:
        Trace.open(file)

    assert refused.value.todo is not None
    assert "formats that can be read" in refused.value.todo
