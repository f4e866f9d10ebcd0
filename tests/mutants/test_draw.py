"""A mutant changes one expression, and a probe at its place changes nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.draw import Mutant, draw, mutated, probed

SOURCE = '''
def place(values: list[int], limit: int = 3) -> int | None:
    """Return 1 where 2 < 3."""
    if TYPE_CHECKING:
        return 7
    if not values or len(values) >= limit:
        return None
    text = f"{1 + 1} values"
    return (len(text) +
            values[0])
'''
CHANGES = {
    ("3", "(4)"), ("not values or len(values) >= limit", "(not values and len(values) >= limit)"),
    ("not values", "(values)"), ("len(values) >= limit", "(len(values) > limit)"), ("0", "(1)"),
    ("len(text) + values[0]", "(None)"), ("len(text) + values[0]", "(len(text) - values[0])"),
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for file in ("app/place.py", "ingest/attach/vllm.py"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(SOURCE)
    return tmp_path


def test_operators_bounds_and_returned_values_are_changed_but_no_types_or_texts(root: Path) -> None:
    drawn = draw(root, 100, seed=1)

    assert {(" ".join(each.old.split()), each.new) for each in drawn} == CHANGES
    assert {each.file for each in drawn} == {"app/place.py"}


def test_the_same_seed_draws_the_same_mutants_and_another_one_others(root: Path) -> None:
    assert draw(root, 3, seed=1) == draw(root, 3, seed=1) != draw(root, 3, seed=2)


def test_every_mutant_is_valid_source_that_differs_in_one_place(root: Path) -> None:
    source = (root / "app/place.py").read_bytes()

    for mutant in draw(root, 100, seed=1):
        changed = mutated(source, mutant)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))


def test_probes_report_the_places_that_are_reached_and_leave_values_and_lines_as_they_are(
    root: Path,
) -> None:
    source, drawn = (root / "app/place.py").read_bytes(), draw(root, 100, seed=1)
    hits: list[int] = []
    names = {"hit": hits.append, "TYPE_CHECKING": False}

    changed = probed(source, drawn, "hit")
    exec(compile(changed, "place", "exec"), names)  # noqa: S102 - our own source, above

    place = names["place"]
    assert callable(place)
    assert [place([5]), place([]), place([1, 2, 3])] == [13, None, None]
    assert len(changed.splitlines()) == len(source.splitlines())
    assert set(hits) == {each.number for each in drawn}


def test_a_mutant_names_its_place_in_one_line() -> None:
    mutant = Mutant(3, "app/a.py", 7, 0, 5, "a <\n b", "(a <= b)")

    assert str(mutant) == "#3 app/a.py:7: a < b -> (a <= b)"
