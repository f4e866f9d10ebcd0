"""Words that are gone stay gone: from names, messages, help and docs."""

from __future__ import annotations

import re

from tests.looped import looped
from tests.tiers import slow
from tests.words import GLOSSARY, Gone, gone, sources, still_used

WORDS = gone(GLOSSARY.read_text("utf-8"))


@slow
@looped("word", WORDS, ids=lambda word: word.word)
def test_a_word_that_is_gone_is_used_nowhere(word: Gone) -> None:
    assert still_used(word, sources().items()) == [], f"say {word.instead}"


@slow
@looped("word", WORDS, ids=lambda word: word.word)
def test_what_still_says_it_is_there(word: Gone) -> None:
    said = "\n".join(sources().values())

    assert [each for each in word.spared if each not in said] == []


PAGE = """
## Words that are gone

| Not this | But | Gone from |
|---|---|---|
| unjudged | not applicable | texts but `"unjudged"` |
| kept | cached | names |
| prompts run | prefills run | texts |
| loaded | model | names of `app/web/` and `app/present/` |
"""
UNJUDGED, KEPT, PROMPTS_RUN, LOADED = gone(PAGE)


@looped(
    "text", ["it is unjudged", "UNJUDGED = 1", "def _unjudged(): ...", "numUnjudged", "unjudgeds"]
)
def test_a_word_of_texts_is_found_in_a_sentence_and_in_a_part_of_a_name(text: str) -> None:
    assert UNJUDGED.uses("app/one.py", f"# a line\n{text}\n") == ["app/one.py:2"]


@looped("text", ['said["unjudged"]', "judged", "unjudgedly"])
def test_what_is_spared_and_what_only_looks_alike_is_no_use(text: str) -> None:
    assert UNJUDGED.uses("app/one.py", text) == []


def test_a_word_of_names_may_stand_in_a_sentence() -> None:
    assert KEPT.uses("app/one.py", '"""What is kept."""  # kept\n') == []
    assert KEPT.uses("docs/one.md", "what is kept") == []


@looped("path", ["app/one.py", "app/web/assets/one.js"])
def test_a_word_of_names_is_found_in_names(path: str) -> None:
    assert KEPT.uses(path, "x = 1\nnumKept = 2\n") == [f"{path}:2"]


def test_a_file_is_not_named_for_a_word_that_is_gone() -> None:
    assert KEPT.uses("ingest/kept_blocks.py", "") == ["ingest/kept_blocks.py:0"]


@looped("kind", [".py", ".c", ".h", ".js", ".mjs", ".md", ".sh", "Makefile"])
def test_every_kind_of_file_that_we_write_is_searched(kind: str) -> None:
    assert any(path.endswith(kind) for path in sources())


def test_several_words_are_found_in_a_row_only() -> None:
    assert PROMPTS_RUN.uses("README.md", "where prompts run, decodes wait") == ["README.md:1"]
    assert PROMPTS_RUN.uses("README.md", "prompts that run") == []


@looped("folder", ["app/web", "app/present"])
def test_a_word_may_be_gone_from_some_folders(folder: str) -> None:
    assert LOADED.uses(f"{folder}/loaded.py", "") == [f"{folder}/loaded.py:0"]
    assert LOADED.uses("app/tui/loaded.py", "") == []


def test_every_word_says_what_to_say_and_stands_once() -> None:
    words = [word.word for word in WORDS]

    assert words
    assert len(words) == len(set(words))
    assert all(re.fullmatch(r"[A-Za-z ]+", word.word) and word.instead for word in WORDS)
