"""What scheduling and switching cost, as the runtime documents it on silicon."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds of scheduler and core time.

    Polling was measured at 95 to 105 ns a core; a completion costs 180 ns at least and 600 ns when
    it retires a task and releases what waits for it. Submitting is free by default: the graph of a
    step is built while the step before it runs (the runtime's orchestrator takes 874 ns a task).
    """

    poll_ns: int = 100
    idle_loop_ns: int = 115
    dispatch_ns: int = 140
    end_block_ns: int = 180
    end_task_ns: int = 600
    setup_ns: int = 350
    switch_ns: int = 810
    submit_ns: int = 0
    timeout_ns: int = 500_000_000
