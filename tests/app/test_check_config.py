"""What `stepscope.toml` and `pyproject.toml` tell `check`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from stepscope.app.check_config import CheckConfig, load_config
from stepscope.app.config_text import format_config
from stepscope.ingest.errors import ConfigError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that no configuration above reaches."""
    (tmp_path / ".git").mkdir()
    return tmp_path


def test_without_a_file_everything_is_as_the_rules_say(project: Path) -> None:
    assert load_config(project) == CheckConfig()


def test_every_setting_is_read(project: Path) -> None:
    (project / "stepscope.toml").write_text(
        'select = ["COR"]\nignore = ["COR005"]\nfail-on = "warning"\nbaseline = "ci/known.json"\n'
        "[rules.COR003]\nmax_share = 0.5\n"
    )

    config = load_config(project)

    assert (config.select, config.ignore, config.fail_on) == (("COR",), ("COR005",), "warning")
    assert config.baseline == project / "ci" / "known.json"
    assert config.thresholds == {"COR003": {"max_share": 0.5}}


def test_stepscope_toml_goes_before_pyproject_toml_setting_by_setting(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.stepscope]\nfail-on = "never"\nignore = ["TRC"]\n'
        "[tool.stepscope.rules.COR003]\nmax_share = 0.5\nlimit = 7\n"
    )
    (project / "stepscope.toml").write_text(
        'fail-on = "warning"\n[rules.mix-parts-skewed]\nlimit = 9\n'
    )

    config = load_config(project)

    assert (config.fail_on, config.ignore) == ("warning", ("TRC",))
    assert config.thresholds == {"COR003": {"max_share": 0.5, "limit": 9}}
    assert config.origins == {
        "fail_on": "stepscope.toml", "ignore": "pyproject.toml",
        "COR003.max_share": "pyproject.toml", "COR003.limit": "stepscope.toml",
    }  # fmt: skip


def test_the_command_line_has_the_last_word(project: Path) -> None:
    (project / "stepscope.toml").write_text('fail-on = "never"\nselect = ["COR"]\n')

    config = load_config(project).with_options(fail_on="error", select=())

    assert (config.fail_on, config.select) == ("error", ())
    assert config.origins == {"fail_on": "command line", "select": "command line"}


def test_the_nearest_folder_that_says_something_counts(project: Path) -> None:
    inner = project / "a" / "b"
    inner.mkdir(parents=True)
    (project / "stepscope.toml").write_text('fail-on = "never"\n')
    (project / "a" / "pyproject.toml").write_text('[project]\nname = "other"\n')

    assert load_config(inner).fail_on == "never"


def test_no_folder_above_the_repository_counts(project: Path) -> None:
    inner = project / "repository"
    (inner / ".git").mkdir(parents=True)
    (project / "stepscope.toml").write_text('fail-on = "never"\n')

    assert load_config(inner).fail_on == "error"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fail_on = 'error'", r"no setting 'fail_on'; did you mean fail-on\?"),
        ("x = 1", r"no setting 'x'; settings are select, ignore"),
        ("fail-on = 'fatal'", r"fail-on: Invalid enum value 'fatal'"),
        ("select = 'COR'", r"select: Expected `array`, got `str`"),
        ("rules = 5", r"rules: Expected `object`, got `int`"),
        ("[rules.COR003]\nlimits = 5", r"no threshold 'limits'; did you mean limit\?"),
        ("[rules.COR999]\nlimit = 5", r"there is no rule 'COR999'"),
        ("a = ", r"not valid TOML"),
        ("a = " + "[" * 5_000, r"not valid TOML"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_files_name(
    project: Path, text: str, message: str
) -> None:
    (project / "stepscope.toml").write_text(text)

    with pytest.raises(ConfigError, match=message) as caught:
        load_config(project)

    assert str(caught.value).startswith(str(project / "stepscope.toml"))


def test_a_file_that_is_no_text_is_refused(project: Path) -> None:
    (project / "stepscope.toml").write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match="not valid TOML"):
        load_config(project)


def test_rules_run_with_the_thresholds_that_are_stated(project: Path) -> None:
    (project / "stepscope.toml").write_text('select = ["COR"]\n[rules.COR003]\nlimit = 1\n')

    rules = {rule.code: rule for rule in load_config(project).rules()}

    assert getattr(rules["COR003"], "limit", None) == 1
    assert {code[:3] for code in rules} == {"COR"}


def test_what_is_shown_can_stand_in_a_file_and_means_the_same(project: Path) -> None:
    (project / "stepscope.toml").write_text(
        'select = ["COR"]\nbaseline = "kn\\u2028o\\"w\\\\n 🐢.json"\n[rules.COR003]\nlimit = 1\n'
    )
    config = load_config(project)

    shown = format_config(config)

    (project / "stepscope.toml").write_text(shown)
    again = load_config(project)
    assert tomllib.loads(shown)["rules"]["COR003"] == {
        "max_share": 0.1,
        "min_run_ns": 1_000,
        "limit": 1,
    }
    assert (again.select, again.baseline) == (config.select, config.baseline)
    assert again.rules() == config.rules()


def test_what_is_shown_says_where_it_was_stated(project: Path) -> None:
    (project / "stepscope.toml").write_text("[rules.COR003]\nlimit = 1\n")

    lines = format_config(load_config(project).with_options(fail_on="never")).splitlines()

    said = {line.partition("#")[0].strip(): line.partition("#")[2].strip() for line in lines}
    assert said["limit = 1"] == "stepscope.toml"
    assert said['fail-on = "never"'] == "command line"
    assert said["max_share = 0.1"] == "default"
