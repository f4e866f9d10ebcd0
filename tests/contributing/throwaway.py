"""Things that nobody needs, one of each kind, each added as CONTRIBUTING says."""

from __future__ import annotations

from tests.contributing.front_patches import COMMAND, PAGE, PANE, TOOL
from tests.contributing.patch import Patch
from tests.contributing.trace_patches import READER, RULE, WRITER

POLICY = Patch(
    "Add a policy",
    "engine/schedulers/alone.py",
    '''"""`alone`: one request after the other, whole prompts, nothing beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from stepscope.engine.plan import Action, Admit, Reject, Run
from stepscope.engine.requests.request import Request
from stepscope.engine.state import State


@dataclass(frozen=True, slots=True)
class Alone:
    """Serves one request after the other."""

    name: str = "alone"

    knobs: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    slotted: ClassVar[bool] = False
    supports: ClassVar[frozenset[str]] = frozenset()

    def schedule(self, state: State) -> Iterator[Action]:
        """Go on with the one that runs, or let the next one in."""
        if state.running:
            yield Run(state.running[0], 1)
        while state.waiting and not state.running:
            request = state.waiting[0]
            if reject := _never_fits(state, request):
                yield reject
            else:
                yield Admit(request)
                yield Run(request, request.num_tokens)


def _never_fits(state: State, request: Request) -> Reject | None:
    needed, blocks = request.max_kv_tokens, state.kv_blocks
    room = min(state.config.max_num_batched_tokens, blocks.num_blocks * blocks.block_size)
    return Reject(request, "too long", "token-budget", needed, room) if needed > room else None
''',
    "Alone,",
    "from stepscope.engine.schedulers.alone import Alone",
    {
        "tests/engine/schedulers/test_alone.py": """
from stepscope.engine.schedulers.alone import Alone
from tests.engine.small_engines import request, serve


def test_nobody_has_company():
    _, rows = serve([request("a"), request("b")], Alone())

    assert {step["num_running"] for step in rows.of("steps")} == {1}
"""
    },
    runs=(
        "tests/engine/schedulers/test_seam.py",
        "tests/engine/serving/test_engine_machine.py::"
        "test_what_must_hold_holds_whatever_comes_and_whenever[Alone]",
    ),
)
PATCHES = (RULE, READER, WRITER, POLICY, PAGE, PANE, TOOL, COMMAND)
