"""Where the page is served, and how serving ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from stepscope.app.web import listen
from stepscope.app.web.server import create_app
from stepscope.ingest.errors import ConfigError, MissingExtra
from stepscope.ingest.storage.saving import save_trace
from tests.app.web.small_traces import conflict_trace, loaded_of
from tests.tiers import sampled


def test_a_taken_port_gives_a_free_one() -> None:
    with listen.bind("127.0.0.1", 0) as first:
        taken = first.getsockname()[1]
        with listen.bind("127.0.0.1", taken) as second:
            assert second.getsockname()[1] != taken


def test_it_listens_where_it_was_told_to() -> None:
    with listen.bind("127.0.0.1", 0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_what_cannot_be_listened_on_is_a_wrong_setting() -> None:
    for host, port in (("256.0.0.1", 0), ("127.0.0.1", 70000), ("::zz", 0), ("", 0)):
        with pytest.raises(ConfigError):
            listen.bind(host, port)


def test_an_ipv6_address_stands_in_brackets() -> None:
    assert listen.address("::1", 8050) == "http://[::1]:8050/"


def test_scripts_run_and_requests_go_only_to_where_the_page_comes_from() -> None:
    trace = conflict_trace()
    client = create_app(trace, loaded_of(trace).result).server.test_client()

    policy = client.get("/").headers["Content-Security-Policy"]

    assert "default-src 'self';" in policy
    scripts = next(part for part in policy.split(";") if "script-src" in part)
    assert "unsafe" not in scripts
    assert "data:" not in scripts


def test_without_dash_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("stepscope.app.web.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dash", None)
    trace = conflict_trace()

    with pytest.raises(MissingExtra, match=r"pip install 'stepscope\[web\]'"):
        create_app(trace, loaded_of(trace).result)


@pytest.fixture
def heeds_hang_ups() -> Iterator[None]:
    """Let processes that are started end by SIGHUP, also where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heeds_hang_ups")
@pytest.mark.parametrize(
    "how", sampled([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], [signal.SIGHUP])
)
def test_it_says_where_it_is_and_ends_quietly_when_told_to(
    how: signal.Signals, tmp_path: Path
) -> None:
    trace = tmp_path / "small.trace"
    save_trace(conflict_trace(), trace)
    (temporary := tmp_path / "temporary").mkdir()
    environ = {**os.environ, "TMPDIR": str(temporary)}
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "stepscope.app", "web", str(trace), "--port", str(port)]
        with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, env=environ) as served:
            assert served.stdout
            assert served.stderr
            said = served.stdout.readline()
            url = said.split()[2]
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with opener.open(url) as page:
                assert page.status == 200
                assert "token" not in page.url
            served.send_signal(how)
            try:
                out, err = served.communicate(timeout=180)
            finally:
                served.kill()

    assert served.returncode == 128 + how
    assert out == ""
    assert [*temporary.iterdir()] == []
    ending = "interrupted" if how is signal.SIGINT else f"ended by {how.name}"
    assert err.splitlines() == [
        f"port {port} is taken; took {urlsplit(url).port}", f"stepscope: {ending}"
    ]  # fmt: skip
