"""What another user of the machine gets of a page on loopback: nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from stepscope.app.web.safety.link import link_to

PATIENCE_S = 180
"""A machine may be busy with other things; nothing here waits this long."""
STRANGER = 65534
"""A user who owns nothing."""
PATHS = (
    "/", "/open/", "/open/begin", "/open/progress/1", "/open/1/", "/open/assets/desk.js",
    "/_dash-layout", "/_dash-dependencies", "/assets/page.js", "/picture", "/news", "/nothing",
    "/sentence",
)  # fmt: skip
ASK = """
import encodings.idna, http.client, json, os, sys  # before it can read no module any more
port, pid, secret, paths = json.loads(sys.argv[1])
os.setgroups([]); os.setgid(USER); os.setuid(USER)
def ask(path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)
    headers = {"Content-Type": "application/json"}
    connection.request("POST" if body else "GET", path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode("utf-8", "replace")
def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
print(json.dumps({
    "file": read(secret),
    "status": {path: ask(path)[0] for path in paths},
    "opened": ask("/open/begin", json.dumps({"path": secret})),
    "seen": read(f"/proc/{pid}/cmdline") + read(f"/proc/{pid}/environ"),
}))
""".replace("USER", str(STRANGER))
needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="another user's process needs root"
)


@contextmanager
def page(folder: Path, *options: str) -> Iterator[tuple[int, int, str]]:
    """Serve the page from which traces are opened; its port, its process and its query."""
    command = [sys.executable, "-m", "stepscope.app", "web", "--port=0", *options]
    environ = {**os.environ, "STEPSCOPE_STATE": str(folder / "state")}
    with subprocess.Popen(command, stdout=-1, text=True, env=environ) as process:
        assert process.stdout
        try:
            url = urlsplit(process.stdout.readline().split()[2])
            yield int(url.port or 0), process.pid, url.query
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE_S)


def asked_by_stranger(port: int, pid: int, secret: Path) -> dict[str, Any]:
    """What another user gets of the page and of its process."""
    wanted = json.dumps([port, pid, str(secret), PATHS])
    command = [sys.executable, "-I", "-c", ASK, wanted]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that only its owner can read."""
    file = tmp_path / "secret.log"
    file.touch(0o600)
    file.write_text("a secret of the owner")
    return file


@needs_root
def test_another_user_of_the_machine_opens_no_file_and_gets_no_answer(secret: Path) -> None:
    with page(secret.parent) as (port, pid, query):
        answers = asked_by_stranger(port, pid, secret)

    assert answers["file"] == ""
    assert answers["status"] == dict.fromkeys(PATHS, 403)
    assert query.removeprefix("token=") not in str(answers)
    status, text = answers["opened"]
    assert status == 403
    assert text.count("\n") == 1


@needs_root
def test_a_token_from_the_environment_is_not_seen_by_another_user(
    secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_TOKEN", "a token of sixteen or more")
    with page(secret.parent) as (port, pid, query):
        answers = asked_by_stranger(port, pid, secret)

    assert query == "token=a+token+of+sixteen+or+more"
    assert answers["status"] == dict.fromkeys(PATHS, 403)
    assert "sixteen" not in str(answers)


@needs_root
def test_without_a_token_another_user_is_answered_as_the_help_warns(secret: Path) -> None:
    with page(secret.parent, "--no-token") as (port, pid, query):
        answers = asked_by_stranger(port, pid, secret)

    assert query == ""
    status, _ = answers["opened"]
    assert status == 200


def test_the_file_that_leads_a_browser_to_the_page_is_its_owners_alone() -> None:
    before = os.umask(0)
    try:
        with link_to('http://127.0.0.1:8050/?token=x&tab="sql"') as address:
            file = Path(urlsplit(address).path)
            modes = [path.stat().st_mode & 0o777 for path in (file.parent, file)]
            markup = file.read_text()
    finally:
        os.umask(before)

    assert modes == [0o700, 0o600]
    assert "token=x" not in address
    assert 'url=http://127.0.0.1:8050/?token=x&amp;tab=&quot;sql&quot;"' in markup
    assert not file.exists()
