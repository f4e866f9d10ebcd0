"""What engines write into a profiler's annotations about a step, and how it is read.

vLLM      `execute_context_2(63)_generation_1(1)`: rows and, in brackets, their tokens; detailed:
          `execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37...)`,
          where sq are the tokens computed and sk those attended to. "context" counts rows without
          an output token yet, so what is computed again after a preemption is a "generation".
          `execute_context_1(888_788544)_generation_0(0)`: behind the tokens, the sum over rows of
          their squares; `execute_context_2_generation_1`: rows alone. Older ones say how many rows
          are new and how many are not, `execute_new_2_cached_1`; the latter decode, or go on with
          their prompt.
SGLang    `step[EXTEND bs=15 toks=15360]`, `step[DECODE bs=32]`, `step[MIXED bs=2 c=1 g=1 c_sq=5
          ... g_sq=1 ...]`. g_sq are the tokens of decodes, more than rows under speculation.
          `step[DRAFT_EXTEND bs=4]` is a pass of the draft model, within a step.
ATOM      `prefill[bs=2 tok=14721 ctx=[7803, 6918]]`, `decode[bs=117/128 tok=117 d=117]` (rows, and
          rows the graph was captured for), `eager_decode[`, `dummy_decode[`, `dummy_prefill[`.
          Inside a `prefill[`, `mixed[n_p=1934 n_d=114]` says how its tokens divide. With ` tbo=1`,
          in the brackets or behind them, the batch ran as two halves that overlap.
ours      as ATOM; `mixed[n_p= n_d=]` may stand by itself.
torch     `ProfilerStep#7`, which says nothing of the batch.
XLA       `train#step_num=7#`: what `StepTraceAnnotation("train", step_num=7)` marks, as its TraceMe
          writes it. It says nothing of the batch either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import polars as pl


@dataclass(frozen=True, slots=True)
class StepTag:
    """What one tag says; None where it says nothing. The fields are those of table `steps`."""

    grammar: str
    kind: str | None = None
    num_prefill_reqs: int | None = None
    num_decode_reqs: int | None = None
    num_prefill_tokens: int | None = None
    num_decode_tokens: int | None = None
    executed_path: str | None = None
    number: int | None = None


Fields = Mapping[str, str]
PROFILER_STEP = "ProfilerStep#N"
STEP_MARKER = "NAME#step_num=N#"
MARKERS = (PROFILER_STEP, STEP_MARKER)
"""Tags that only number steps: they count where no other tag is."""
EXECUTE = "execute_context_R(T)_generation_R(T)"
NEW_CACHED = "execute_new_R_cached_R"
SGLANG = "step[MODE bs=R]"
ATOM = "prefill[bs=R tok=T] or decode[bs=R]"
MIXED = "mixed[n_p=T n_d=T]"
_ROWS, _TOKENS = r"\d{1,9}", r"\d{1,15}"
_MOST_ROWS = 10**9
_SQUARES = r"\d{1,30}"


def _batch(phase: str) -> str:
    """Rows of a phase, and in brackets their tokens."""
    tokens = rf"(?P<{phase}t>{_TOKENS})(?:_(?P<{phase}s>{_SQUARES}))?"
    detailed = rf"sq(?P<{phase}q>{_TOKENS})(?:sk\d+)?(?:sqsq\d+)?(?:sqsk\d+)?"
    return rf"(?P<{phase}>{_ROWS})(?:\((?:{tokens}|{detailed})\))?"


_EXECUTE_TAG = rf"execute_(?:\d+_)?context_{_batch('c')}_generation_{_batch('g')}"
_LOOKS_LIKE = (
    r"^(?:execute_(?:\d+_)?[a-z]+_\d|step\[|(?:dummy_)?(?:eager_)?(?:prefill|decode)\[|mixed\["
    r"|ProfilerStep#|[^#]{0,200}#step_num=)"
)
_DRAFT = re.compile(r"step\[DRAFT\w* bs=.*\]")
_FIELD = re.compile(rf"(?<![\w.])(\w+)=({_TOKENS})")


def kind_of(num_prefill: int, num_decode: int) -> str:
    """The kind of a step by its rows, or by its tokens."""
    if num_prefill and num_decode:
        return "mixed"
    return "prefill" if num_prefill else "decode" if num_decode else "idle"


def parse_tag(text: str) -> StepTag | None:
    """What a step's annotation says; None for anything else, a draft pass for example."""
    for pattern, read in _GRAMMARS:
        if match := pattern.fullmatch(text):
            said = read(dict(_FIELD.findall(text)) | match.groupdict())
            return said if said and _is_possible(said) else None
    return None


def _is_possible(said: StepTag) -> bool:
    rows = (said.num_prefill_reqs, said.num_decode_reqs)
    return all(num is None or 0 <= num <= _MOST_ROWS for num in rows)


def looks_like_tag(names: pl.Series) -> pl.Series:
    """Which of the names begin as an annotation of a step does, as all that can be read do."""
    return names.str.contains(_LOOKS_LIKE)


def is_unread(text: str) -> bool:
    """Whether a name that looks like a tag of a step is none that is known."""
    return parse_tag(text) is None and not _DRAFT.fullmatch(text)


def joined(outer: StepTag, inner: StepTag) -> StepTag:
    """What two tags of one step say together: the outer one, with what only the inner one knows."""
    if inner.grammar == MIXED:
        return _split(outer, inner)
    gaps = {
        name: getattr(inner, name)
        for name in StepTag.__dataclass_fields__
        if name != "grammar" and getattr(outer, name) is None
    }
    return replace(outer, **gaps)


def _split(outer: StepTag, inner: StepTag) -> StepTag:
    """A prefill that turns out to be mixed: the rows not in prefill decode one token each."""
    if outer.kind != "prefill" or inner.num_decode_tokens is None:
        return outer
    rows = outer.num_prefill_reqs
    decodes = inner.num_decode_tokens
    return replace(
        outer,
        kind=inner.kind,
        num_prefill_reqs=rows - decodes if rows is not None and rows > decodes else None,
        num_decode_reqs=decodes if rows is not None and rows > decodes else None,
        num_prefill_tokens=inner.num_prefill_tokens,
        num_decode_tokens=decodes,
    )


def _execute(said: Fields) -> StepTag | None:
    if not (_may_be_squares(said, "c") and _may_be_squares(said, "g")):
        return None
    context, generation = int(said["c"]), int(said["g"])
    tokens = _tokens(said, "c"), _tokens(said, "g")
    return StepTag(EXECUTE, kind_of(context, generation), context, generation, *tokens)


def _tokens(said: Fields, phase: str) -> int | None:
    written = said[f"{phase}t"] or said[f"{phase}q"]
    return int(written) if written else 0 if not int(said[phase]) else None


def _may_be_squares(said: Fields, phase: str) -> bool:
    """Whether the second number in brackets can be the sum of squares of what adds up to the first.

    It is most where one row has all tokens, and least where all rows have as many.
    """
    if not said[f"{phase}s"]:
        return True
    rows, tokens, squares = (int(said[phase + part]) for part in ("", "t", "s"))
    return squares <= tokens**2 <= squares * rows


def _new_cached(said: Fields) -> StepTag:
    """What is not new may decode or go on with its prompt: where it is there, nothing follows."""
    new, cached = int(said["new"]), int(said["cached"])
    if cached:
        return StepTag(NEW_CACHED)
    return StepTag(NEW_CACHED, kind_of(new, 0), new, 0, None if new else 0, 0)


def _extend(said: Fields) -> StepTag:
    return StepTag(SGLANG, "prefill", int(said["bs"]), 0, _number(said, "toks"), 0)


def _decode(said: Fields) -> StepTag:
    rows = int(said["bs"])
    tokens = _number(said, "g_sq")
    return StepTag(
        SGLANG, "decode" if rows else "idle", 0, rows, 0, rows if tokens is None else tokens
    )


def _verify(said: Fields) -> StepTag:
    return StepTag(SGLANG, "decode", 0, int(said["bs"]), 0, None)


def _sglang_mixed(said: Fields) -> StepTag:
    context, generation = _number(said, "c"), _number(said, "g")
    tokens = _number(said, "c_sq"), _number(said, "g_sq")
    kind = "mixed" if context is None or generation is None else kind_of(context, generation)
    return StepTag(SGLANG, kind, context, generation, *tokens)


def _sglang_idle(_: Fields) -> StepTag:
    return StepTag(SGLANG, "idle", 0, 0, 0, 0)


def _atom_prefill(said: Fields) -> StepTag:
    kind = "dummy" if said["dummy"] else "prefill"
    path = "tbo" if _is_halved(said) else None
    return StepTag(ATOM, kind, int(said["bs"]), 0, _number(said, "tok"), 0, path)


def _atom_decode(said: Fields) -> StepTag:
    prefills = int(said.get("p", 0))
    rows = int(said.get("d", int(said["bs"]) - prefills))
    tokens = _number(said, "tok")
    return StepTag(
        ATOM,
        "dummy" if said["dummy"] else kind_of(prefills, rows),
        prefills,
        rows,
        None if prefills else 0,
        None if prefills else tokens,
        ("eager" if said["eager"] else "graph") + ("+tbo" if _is_halved(said) else ""),
    )


def _mixed(said: Fields) -> StepTag:
    prefill, decode = int(said["n_p"]), int(said["n_d"])
    path = "mixed+tbo" if _is_halved(said) else None
    return StepTag(MIXED, kind_of(prefill, decode), None, None, prefill, decode, path)


def _is_halved(said: Fields) -> bool:
    return int(said.get("tbo", 0)) > 0


def _profiler_step(said: Fields) -> StepTag:
    return StepTag(PROFILER_STEP, number=int(said["n"]))


def _step_marker(said: Fields) -> StepTag:
    return StepTag(STEP_MARKER, number=int(said["n"]))


def step_marker(name: str, number: int) -> str:
    """The tag of a step that XLA's profilers number."""
    return f"{name.replace('#', ' ')[:200]}#step_num={number}#"


def _number(said: Fields, name: str) -> int | None:
    return int(said[name]) if name in said else None


_BS = rf"bs={_ROWS}(?![\d.])"
_DUMMY = r"(?P<dummy>dummy_)?"
_TBO = r"(?: tbo=[01])?"
_GRAMMARS: tuple[tuple[re.Pattern[str], Callable[[Fields], StepTag | None]], ...] = (
    (re.compile(_EXECUTE_TAG), _execute),
    (re.compile(rf"execute_new_(?P<new>{_ROWS})_cached_(?P<cached>{_ROWS})"), _new_cached),
    (re.compile(rf"step\[(?:EXTEND|SPLIT_PREFILL) {_BS}.*\]"), _extend),
    (re.compile(rf"step\[DECODE {_BS}.*\]"), _decode),
    (re.compile(rf"step\[TARGET_VERIFY {_BS}.*\]"), _verify),
    (re.compile(rf"step\[MIXED {_BS}.*\]"), _sglang_mixed),
    (re.compile(rf"step\[IDLE {_BS}.*\]"), _sglang_idle),
    (re.compile(rf"{_DUMMY}prefill\[{_BS}.*\]{_TBO}"), _atom_prefill),
    (
        re.compile(rf"{_DUMMY}(?P<eager>eager_)?decode\[{_BS}.*\]{_TBO}"),
        _atom_decode,
    ),
    (re.compile(rf"mixed\[n_p={_TOKENS} n_d={_TOKENS}{_TBO}\]{_TBO}"), _mixed),
    (re.compile(rf"ProfilerStep#(?P<n>{_TOKENS})"), _profiler_step),
    (re.compile(rf"[^#]{{0,200}}#step_num=(?P<n>{_TOKENS})(?:,[^#]*)?#"), _step_marker),
)
