"""Threads of the page decode only types that msgspec already knows.

Two threads that are the first to decode a type crash the process (msgspec 0.22), so each type is
made known by the import of its module.
"""

from __future__ import annotations

import subprocess
import sys

DECODE = """
import msgspec._utils
from stepscope.analyzers.check import run
from stepscope.app.kept import flags
from stepscope.app.replay.what_if import runs
from stepscope.app.web import refusals
from stepscope.app.web.pictures import route

def refuse(cls):
    raise AssertionError(f"{cls.__name__} was not known")

msgspec._utils._get_class_annotations = refuse
route._read(route._PICTURE, b'{"t0": 0, "t1": 1, "width": 1, "lanes": [], "hide": []}')
route._read(route._SENTENCE, b'{"lane": 0, "t": 0}')
refusals._read(b'{"output": "", "outputs": [], "inputs": [], "state": []}')
for name, kind in refusals.VALUES.items():
    try:
        msgspec.convert({}, kind)
    except msgspec.ValidationError:
        pass
runs._read(b"{}")
flags._FLAGS.decode(b"{}")
try:
    msgspec.convert({}, run.Finding)
except msgspec.ValidationError:
    print("all were known")
"""


def test_the_first_request_of_a_page_introduces_no_type() -> None:
    run = subprocess.run(
        [sys.executable, "-c", DECODE], capture_output=True, text=True, check=False
    )

    assert (run.stdout, run.stderr) == ("all were known\n", "")
