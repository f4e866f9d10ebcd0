"""The page's modules as one script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from stepscope.app.web.report.scripts import ASSETS, STAND_INS, bundled, script
from tests.app.web.test_scripts import node, ran


def joined(folder: Path, stand_ins: Mapping[str, str] = STAND_INS, **modules: str) -> str:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return bundled("entry.js", (folder,), stand_ins)


def test_modules_run_as_one_script_in_the_order_in_which_they_need_each_other(
    tmp_path: Path,
) -> None:
    made = joined(
        tmp_path,
        entry='import * as far from "./far.js";\nimport { one } from "./one.js";\nfar.say(one);\n',
        far='import { one } from "./one.js";\nexport function say(x) { console.log(x + one); }\n',
        one="export const one = 20;\n",
    )

    assert ran(node(), "-e", made) == "40\n"


def test_a_module_that_stands_in_is_taken_instead(tmp_path: Path) -> None:
    made = joined(
        tmp_path,
        {"server.js": "held.js"},
        entry='import { ask } from "./server.js";\nconsole.log(ask());\n',
        server='export const ask = () => "server";\n',
        held='export const ask = () => "held";\n',
    )

    assert ran(node(), "-e", made) == "held\n"


def test_what_cannot_be_joined_is_refused(tmp_path: Path) -> None:
    faults = {
        "wants b": {"entry": 'import { b } from "./far.js";\n', "far": "export const a = 1;\n"},
        "there is no far.js": {"entry": 'import { a } from "./far.js";\n'},
        "not an import on one line": {"entry": "import {\n  a,\n} from './far.js';\n"},
        "exports no function": {"entry": "export default 1;\n"},
        "would end the script": {"entry": "const end = '</script>';\n"},
        "imports entry.js": {
            "entry": 'import { a } from "./far.js";\n',
            "far": 'import { b } from "./entry.js";\n',
        },
    }
    for number, (wrong, modules) in enumerate(faults.items()):
        (folder := tmp_path / str(number)).mkdir()
        with pytest.raises(ValueError, match=re.escape(wrong)):
            joined(folder, STAND_INS, **modules)


def test_a_report_asks_no_server_and_keeps_no_address() -> None:
    run = script()

    assert all((ASSETS / file).is_file() for file in STAND_INS)
    for word in ("dash_clientside", "fetch(", "XMLHttpRequest", "pushState", "replaceState"):
        assert word not in run
