"""A query is bounded in depth and length before Polars sees it."""

from __future__ import annotations

import pytest

from stepscope.ingest.bounded.query_size import MOST_CHAINED, MOST_NESTED, query_size
from stepscope.ingest.errors import QueryError
from stepscope.ingest.query import condition, run_sql
from tests.ingest.test_query import FRAMES
from tests.looped import looped
from tests.tiers import slow

MANY = 4_000
STEPS = "from steps"
FEW = "from few"
TOO_LARGE = {
    "a sum": f"select {'+'.join(['step'] * MANY)} {STEPS}",
    "a difference": f"select {' - '.join(['step'] * MANY)} {STEPS}",
    "a text": f"select {'||'.join(['kind'] * MANY)} {STEPS}",
    "conditions": f"select * {STEPS} where {' or '.join(['step = 1'] * MANY)}",
    "whens": f"select case {'when step = 1 then 2 ' * MANY} end {STEPS}",
    "cases": f"select {'case when step = 1 then 2 else ' * MANY} 1 {' end' * MANY} {STEPS}",
    "cases in conditions": f"select {'case when ' * MANY} 1 {' then 1 end' * MANY} {STEPS}",
    "parentheses": f"select {'(' * MANY} step {')' * MANY} {STEPS}",
    "open parentheses": f"select {'(' * MANY}",
    "functions": f"select {'abs(' * MANY} step {')' * MANY} {STEPS}",
    "not": f"select * {STEPS} where {'not ' * MANY} step = 1",
    "not in parentheses": f"select * {STEPS} where {'not (' * MANY} 1 {')' * MANY}",
    "signs": f"select {'- ' * MANY} step {STEPS}",
    "subqueries": f"select * {'from (select * ' * MANY} {FEW} {')' * MANY}",
    "lists of queries": f"select 1 where 1 in {'(select 1 where 1 in ' * MANY} (1) {')' * MANY}",
    "lists in lists": f"select {'step in (' * MANY} 1 {')' * MANY} {STEPS}",
    "unions": " union all ".join([f"select step {STEPS}"] * MANY),
    "joins": f"select 1 {STEPS} {'join few using (kind) ' * MANY}",
    "tables": f"select 1 {STEPS} {', few' * MANY}",
    "named queries": f"with {', '.join(f'a{at} as (select 1)' for at in range(MANY))} select 1",
    "a long list": f"select * {STEPS} where step in ({','.join(['1'] * 60_000)})",
    "casts": f"select step {'::int' * MANY} {STEPS}",
}


@looped("query", TOO_LARGE.values(), ids=list(TOO_LARGE))
def test_a_query_past_a_limit_is_refused_in_one_line_that_names_it(query: str) -> None:
    with pytest.raises(QueryError, match=r"the query is too large.*[0-9,]+.*; ") as refused:
        run_sql(FRAMES, query)

    assert len(str(refused.value).splitlines()) == 1


PLAINS = {
    "a sum": f"select {'+'.join(['step'] * MOST_CHAINED)} {FEW}",
    "cases": f"select {'case when step = 1 then 2 else ' * MOST_NESTED} 1 {' end' * MOST_NESTED} "
    + FEW,
    "parentheses": f"select {'(' * MOST_NESTED} step {')' * MOST_NESTED} {FEW}",
    "subqueries": f"select * {'from (select * ' * MOST_NESTED} {FEW} {')' * MOST_NESTED}",
    "signs": f"select {'- ' * MOST_NESTED} step {FEW}",
    "unions": " union all ".join([f"select step {FEW}"] * 100),
    "joins": f"select count(*) {FEW} t0 "
    + " ".join(f"join few t{at} on t{at}.step = t0.step" for at in range(1, 100)),
    "named queries": f"with a0 as (select * {FEW})"
    + "".join(f", a{at} as (select * {'from'} a{at - 1})" for at in range(1, 99))
    + f"select * {'from'} a98",
    "a long list": f"select * {FEW} where step in ({','.join(map(str, range(20_000)))})",
    "many columns": f"select {','.join(f'step + {at} as s{at}' for at in range(3_000))} {FEW}",
}


@slow
@looped("query", PLAINS.values(), ids=list(PLAINS))
def test_a_query_up_to_a_limit_is_run(query: str) -> None:
    assert len(run_sql({"few": FRAMES["steps"].head(2)}, query)) > 0


def test_a_condition_has_the_same_limits() -> None:
    with pytest.raises(QueryError, match="the query is too large"):
        condition(f"{'+'.join(['step'] * MANY)} > 1")


def test_signs_in_texts_and_comments_are_no_operators() -> None:
    signs = "((- + case not " * MANY

    size = query_size(f"select '{signs}', \"{signs}\" /* {signs} */ {STEPS} -- {signs}")

    assert (size.num_nested, size.num_chained, size.num_tokens) == (0, 0, 6)


def test_a_query_that_may_make_much_of_one_row_is_not_light() -> None:
    light = "select kind || '-' || step from steps where step in (1, 2, 3)"
    doubled = "select kind || kind as kind from (select kind || kind as kind from steps)"

    assert query_size(light).is_light
    assert not query_size(doubled).is_light
    assert not query_size("select array_agg(step) over () from steps").is_light


def test_a_query_whose_nesting_polars_misreads_says_how_deep_it_is() -> None:
    deep = "select * from steps where " + "1=1 and 1=1 or 1 < 1+2*(" * 12 + "1" + ")" * 12

    with pytest.raises(QueryError, match="12 levels of nesting"):
        run_sql(FRAMES, deep)
