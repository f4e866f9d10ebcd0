"""Rules of other packages that cannot be loaded or that fail: refused in a line, never clean."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from stepscope.analyzers.check.coverage import coverage
from stepscope.analyzers.check.registry import by_code, of_others, select
from stepscope.analyzers.check.run import check
from stepscope.app.cli import main
from stepscope.ingest.entry_points import tell_once
from stepscope.ingest.errors import ConfigError, StepscopeError
from tests.analyzers.check.rules_of_others import RULE, Install, installing
from tests.looped import looped
from tests.packages import stepscope
from tests.tiers import slow
from tests.traces import trace_of

BROKEN = {
    "fails as it is imported": ("1 / 0", "ZeroDivisionError: division by zero"),
    "ends the program as it is imported": ("raise SystemExit(0)", "SystemExit: 0"),
    "is no Python": ("def (", "SyntaxError"),
    "has no such name": ("", "has no attribute 'SlowStep'"),
    "is no rule at all": ("SlowStep = 7", "it is not a frozen dataclass"),
    "is not frozen": (RULE.replace("frozen=True, ", ""), "it is not a frozen dataclass"),
    "wants arguments": (RULE.replace("int = 1_000_000_000", "int"), "TypeError"),
    "has no code": (RULE.replace('code: ClassVar[str] = "QUE001"', "codes = 1"), "AttributeError"),
    "has a code that hides": (RULE.replace('"QUE001"', '"\\x1b[2J"'), "is not the code of a rule"),
    "has a name that is markup": (RULE.replace('"slow-step"', '"<b>slow"'), "the name of a rule"),
    "has a severity of its own": (RULE.replace("Severity.ERROR", '"fatal"'), "is no Severity"),
    "needs what no trace has": (RULE.replace("steps.dur_ns", "steps.joy"), "it needs 'steps.joy'"),
    "has no check": (RULE.replace("def check", "def chek"), "AttributeError"),
    "has a threshold that cannot be stated": (
        RULE.replace("min_dur_ns: int", "min_dur_ns: complex"), "Expected `complex`",
    ),
    "has no page": (RULE.replace('"""QUE001: steps are slow.', '_ = """', 1), "no docstring"),
    "does not say when it applies": (
        f"{RULE}\n    def applies(self, trace):\n        return True\n",
        "does not begin with 'Tell whether'",
    ),
    "has an error that fails": (
        "class Bad(Exception):\n    def __str__(self):\n        1 / 0\nraise Bad()",
        "Bad: it cannot say what",
    ),
    "takes a code of ours": (RULE.replace("QUE001", "COR001"), "COR001 begins as codes of"),
    "takes a family of ours": (RULE.replace("QUE001", "COR777"), "COR777 begins as codes of"),
    "takes a name of ours": (RULE.replace("slow-step", "mix-starved"), "taken by stepscope"),
}  # fmt: skip


@looped("how", BROKEN)
def test_what_is_no_rule_is_refused_in_one_line_that_names_its_package(
    tmp_path: Path, how: str
) -> None:
    source, why = BROKEN[how]
    with installing(tmp_path) as install:
        install("acme-rules", source)

        with pytest.raises(ConfigError) as caught:
            select()

    said = str(caught.value)
    module = "acme_rules:SlowStep"
    assert said.startswith(f"acme-rules: its rule one ({module}) cannot be used: ")
    assert why in said
    assert said.endswith("; mend or uninstall acme-rules")
    assert len(said.splitlines()) == 1


@slow
def test_a_check_of_all_rules_does_not_run_without_one_and_ours_are_explained_all_the_same(
    install: Install, sample_traces: Path
) -> None:
    folder = install("acme-rules", "import no_such_module")

    run = stepscope(folder, "check", sample_traces / "mix-admission-after.trace")

    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("stepscope: acme-rules: its rule one")
    assert run.err.count("\n") == 1
    assert stepscope(folder, "explain", "COR001").code == 0


def ran(*words: object) -> tuple[int, str, str]:
    """Exit code, output and complaints of a command in this process, which loads rules again."""
    of_others.cache_clear()
    tell_once.cache_clear()
    out, complaints = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(complaints):
        code = main([str(word) for word in words])
    return code, out.getvalue(), complaints.getvalue()


LOOKS: dict[str, tuple[str, ...]] = {
    "info": ("info", "{trace}"),
    "info in JSON": ("info", "--format", "json", "{trace}"),
    "diff": ("diff", "{trace}", "{trace}"),
    "rules": ("rules",),
    "explain": ("explain",),
    "one of ours among the broken": ("explain", "COR001"),
}


def test_what_only_looks_goes_on_without_a_broken_rule_and_says_so_in_one_line(
    install: Install, sample_traces: Path
) -> None:
    trace = sample_traces / "vllm_prefixes.trace"
    asked = {how: [word.format(trace=trace) for word in words] for how, words in LOOKS.items()}
    without = {how: ran(*words)[:2] for how, words in asked.items()}
    install("acme-rules", "import no_such_module")

    runs = {how: ran(*words) for how, words in asked.items()}

    assert {how: (code, out) for how, (code, out, _) in runs.items()} == without
    del runs["one of ours among the broken"]
    for how, (_, _, complaint) in runs.items():
        line, *more = complaint.splitlines()
        assert line.startswith("stepscope: acme-rules: its rule one (acme_rules:SlowStep) cannot")
        assert more == [], how


@pytest.mark.parametrize("body", ["raise KeyError('layout')", "raise SystemExit(0)"])
def test_a_rule_of_others_that_fails_is_not_applicable_to_who_only_looks(
    install: Install, body: str, capsys: pytest.CaptureFixture[str]
) -> None:
    head, _, _ = RULE.partition("        slow =")
    install("acme", f"{head}        {body}\n")

    result = check(trace_of(steps=[{"step": 1, "kind": "decode", "dur_ns": 1}]))

    assert result.lacking["QUE001"] == ("only where it does not fail",)
    assert capsys.readouterr().err.startswith("stepscope: trace: rule QUE001 failed: ")
    assert set(result.counts) >= {"TRC001", "TRC002", "TRC003"}


def test_a_rule_of_others_that_cannot_say_whether_it_applies_does_not_stop_who_looks(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    applies = '    def applies(self, trace):\n        """Tell whether it does."""\n        1 / 0\n'
    install("acme", f"{RULE}\n{applies}")
    trace = trace_of(steps=[{"step": 1, "kind": "decode", "dur_ns": 1}])

    assert coverage(trace).lacking["QUE001"] == ("only where it does not fail",)
    assert "rule QUE001 failed: ZeroDivisionError" in capsys.readouterr().err


@slow
def test_what_needs_no_rule_runs_beside_a_package_that_is_broken(
    install: Install, sample_traces: Path
) -> None:
    install("acme-rules", "import no_such_module")
    trace = sample_traces / "mix-admission-after.trace"

    for words in (["blame", trace], ["sql", trace, "select count(*) from steps"]):
        code, _, complaints = ran(*words)

        assert (code, complaints) == (0, "")


FAILS = {
    "raises": ("raise KeyError('layout')", "KeyError"),
    "ends the program": ("raise SystemExit(0)", "SystemExit: 0"),
    "finds nothing that can be gone through": ("return 7", "TypeError"),
    "finds what is not a finding": ("return ['wrong']", "AttributeError"),
    "finds in the name of another rule": (
        "from stepscope.analyzers.check.registry import by_code; "
        "return [finding(by_code('COR001'), 'wrong', 'mend it')]", "it found COR001",
    ),
    "finds with a place that is none": (
        "return [finding(self, 'wrong', 'mend it', at={'ts_ns': 'soon'})]", "ts_ns",
    ),
    "finds with evidence that cannot be written": (
        "return [finding(self, 'wrong', 'mend it', evidence={'what': object()})]", "evidence",
    ),
}  # fmt: skip


@looped("how", FAILS)
def test_a_rule_of_others_that_fails_is_one_line_and_never_clean(tmp_path: Path, how: str) -> None:
    body, why = FAILS[how]
    head, _, _ = RULE.partition("        slow =")
    trace = trace_of(steps=[{"step": 1, "kind": "decode", "dur_ns": 1}])
    with installing(tmp_path) as install:
        install("acme", f"{head}        {body}\n")

        with pytest.raises(StepscopeError, match=r"^.*rule QUE001 failed: ") as caught:
            check(trace, (by_code("QUE001"),))

    assert why in str(caught.value)
