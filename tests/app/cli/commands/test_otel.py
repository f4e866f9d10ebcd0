"""`stepscope otel`: a trace as OpenTelemetry, in a file or sent to the endpoint that is named."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

from tests.app.cli.conftest import Command
from tests.app.otel.receiver import Answer, receiving
from tests.conftest import ROOT
from tests.looped import looped

SAMPLES = ROOT / "sample_traces"
CROWD = SAMPLES / "vllm_crowd.trace"
PROFILE = SAMPLES / "torch_profiler_cpu.json.gz"


def test_a_file_is_read_again_by_every_command(stepscope: Command, tmp_path: Path) -> None:
    out = tmp_path / "run.otlp.json.gz"

    run = stepscope("otel", CROWD, "-o", out)

    assert (run.code, run.out) == (0, "")
    assert run.err == f"wrote {out}: 138 spans of 20 requests and its findings\n"
    spans, metrics = gzip.decompress(out.read_bytes()).splitlines()
    assert "resourceSpans" in json.loads(spans)
    assert "resourceMetrics" in json.loads(metrics)
    again = stepscope("info", out)
    assert "20 arrive" in again.out
    assert "6 preempt, 6 resume" in again.out


def test_spans_and_metrics_are_sent(stepscope: Command) -> None:
    with receiving() as received:
        run = stepscope("otel", CROWD, "--endpoint", received.endpoint)

    assert run.code == 0
    assert run.err == f"sent to {received.endpoint}: 138 spans of 20 requests and its findings\n"
    assert len(received.every_span()) == 138
    assert {each.name for each in received.every_metric()} == {
        "stepscope.findings", "stepscope.rules_not_applicable"
    }  # fmt: skip


@looped(("only", "paths"), [
    ("spans", ["/v1/traces"]), ("metrics", ["/v1/metrics"]),
])  # fmt: skip
def test_one_kind_alone_may_be_sent(stepscope: Command, only: str, paths: list[str]) -> None:
    with receiving() as received:
        assert stepscope("otel", CROWD, "--endpoint", received.endpoint, "--only", only).code == 0

    assert received.paths == paths


def test_an_endpoint_that_refuses_has_an_exit_code_of_its_own(stepscope: Command) -> None:
    with receiving(Answer(404)) as received:
        run = stepscope("otel", CROWD, "--endpoint", received.endpoint, "--only", "spans")

    assert run.code == 7
    assert run.err == (
        f"stepscope: {received.endpoint}/v1/traces: it answered 404 Not Found; "
        "send what it takes: --only spans, or --only metrics\n"
    )


def test_a_run_whose_clock_has_no_date_is_laid_where_it_is_asked_for(
    stepscope: Command,
) -> None:
    trace = SAMPLES / "fcfs-preemption-before.trace"
    with receiving() as received:
        stepscope("otel", trace, "--endpoint", received.endpoint, "--only", "spans",
                  "--began", "2026-11-26T16:00:00.5+01:00")  # fmt: skip

    first = min(span.start_time_unix_nano for span in received.every_span())
    assert first == 1_795_705_200_500_000_000


def test_a_profile_names_no_request_and_has_findings_alone(
    stepscope: Command, tmp_path: Path
) -> None:
    run = stepscope("otel", PROFILE, "-o", tmp_path / "profile.json")

    assert run.code == 0
    assert "no spans, as it names no request and its findings" in run.err
    none = stepscope("otel", PROFILE, "-o", tmp_path / "none.json", "--only", "spans")
    assert none.code == 2
    assert "it names no request, and spans are of requests; send its findings" in none.err
    assert not (tmp_path / "none.json").exists()


@looped(("words", "says"), [
    ((), "name where it goes"),
    (("-o", "a.json", "--endpoint", "http://127.0.0.1:1"), "name where it goes"),
    (("-o", "a.json", "--timeout", "3"), "--timeout is of --endpoint"),
    (("-o", "a.txt"), "OTLP is not written there"),
    (("-o", str(CROWD / "a.json")), "it lies in a trace"),
    (("--endpoint", "127.0.0.1:4318"), "it is no address of a collector"),
    (("-o", "a.json", "--began", "soon"), "'soon' is no time"),
    (("-o", "a.json", "--began", "1066-10-14"), "'1066-10-14' is no time"),
])  # fmt: skip
def test_wrong_usage_is_told(stepscope: Command, words: tuple[str, ...], says: str) -> None:
    run = stepscope("otel", CROWD, *words)

    assert run.code == 2
    assert says in run.err


def test_a_file_that_is_there_is_kept(stepscope: Command, tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    out.write_text("mine")

    assert "it already exists" in stepscope("otel", CROWD, "-o", out).err
    assert out.read_text() == "mine"


def test_without_the_sdk_it_says_what_to_install_and_files_are_written_all_the_same(
    tmp_path: Path,
) -> None:
    script = (
        "import sys; sys.modules['opentelemetry.sdk'] = None; "
        "from stepscope.app.cli.main import main; words = ['otel', sys.argv[1], '--only', 'spans'];"
        "sent = main([*words, '--endpoint', 'http://127.0.0.1:9']);"
        "print(sent, main([*words, '-o', 'run.json']))"
    )
    ran = subprocess.run([sys.executable, "-c", script, CROWD], cwd=tmp_path, capture_output=True,
                         text=True, check=False)  # fmt: skip

    assert ran.stdout == "2 0\n"
    assert ran.stderr.splitlines()[0] == (
        "stepscope: sending needs OpenTelemetry's SDK; "
        "pip install 'stepscope[otel]', or write a file: -o FILE"
    )
