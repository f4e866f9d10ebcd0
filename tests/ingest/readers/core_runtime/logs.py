"""Small logs of the core-group runtime: two groups, cores 0-1 AIC and 2-5 AIV."""

from __future__ import annotations

HOST = "[mono_ns={}][T0x7f3ae1868b80]"
ANCHOR = (
    HOST.format(1000) + "[TIMING] clock_anchor: [CLOCK_ANCHOR] v=1 pid=7 mono_ns=1000 "
    "wall_ns=1700000000000001000\n"
)
ARENA = HOST.format(2000) + "[INFO] acquire: [runtime_maker.cpp:708] TIMING: arena_setup = 25ms\n"
RINGS = (
    HOST.format(2500) + "[INFO] resolve_arena_sizing: [runtime_maker.cpp:546] Ring buffer sizes: "
    "task_window=[4, 8] heap=[64, 64]\n"
)
STARTS = (
    "[INFO] resolve_and_dispatch: [scheduler_dispatch.cpp:904] Thread 0: PTO2 dispatch starting "
    "with 6 cores\n"
)


def dispatched(
    part: str, task: int, kernels: str, block: str, core: tuple[int, int], slot: str = "idle"
) -> str:
    """A dispatch by thread 0 to (core_offset, core_id)."""
    index, _, total = block.partition("/")
    return (
        "[DEBUG] prepare_subtask_to_core: [scheduler_dispatch.cpp:205] Thread 0: Dispatched "
        f"{slot} {part} task {task} kernel_id=[{kernels}] "
        f"block_idx={index}/total_blocks={total} to "
        f"core_offset={core[0]} core_id={core[1]} reg_task_id=1\n"
    )


def span(name: str, ts_ns: int, dur_ns: int, depth: int = 1) -> str:
    """A host span, written when it ended."""
    return (
        HOST.format(ts_ns + dur_ns + 50) + "[TIMING] emit_host_span: [STRACE] v=1 pid=7 tid=8 "
        f"inv=1 hid=0 depth={depth} name={name} ts={ts_ns} dur={dur_ns} \n"
    )


def stall(text: str, level: str = "INFO") -> str:
    """A line of a stall report."""
    return (
        f"[{level}] log_stall_diagnostics: [scheduler_cold_path.cpp:274] "
        f"[STALL thread=0 idle_iterations=9] {text}\n"
    )


RING = 1 << 32


def timed_out(
    sub_class: str = "S1:running-stalled", task: int = 2 * RING + 35, core: int = 26, by: str = ""
) -> str:
    """The two lines with which the host says that the scheduler of a run gave up."""
    running, waiting = (1, 3) if core >= 0 else (0, 4)
    host = "[ERROR] validate_runtime_impl: "
    return (
        f"{host}{by}runtime failed: orch_error_code=0 sched_error_code=100 runtime_status=-100\n"
        f"{host}{by}scheduler timeout sub_class={sub_class} (detail=1) completed=307/311 "
        f"running={running} ready=0 waiting={waiting} orch_done=1 stuck_task_id={task} "
        f"stuck_core={core}\n"
    )


WHOLE = (
    STARTS
    + dispatched("aic", RING, "0,-1,-1", "0/3", (0, 0))
    + dispatched("aic", RING, "0,-1,-1", "1/3", (0, 0), "pending")
    + dispatched("aiv0", RING + 1, "-1,4,-1", "0/1", (2, 3))
    + dispatched("aic", RING, "0,-1,-1", "2/3", (0, 0), "pending")
    + dispatched("aic", RING + 2, "1,2,3", "0/1", (3, 1))
    + dispatched("aiv0", RING + 2, "1,2,3", "0/1", (4, 4))
    + dispatched("aiv1", RING + 2, "1,2,3", "0/1", (5, 5))
    + dispatched("aiv0", RING + 3, "-1,4,-1", "0/1", (2, 3))
    + "[INFO] handle_orchestrator_exit: [scheduler_cold_path.cpp:86] Thread 0: PTO2 completed "
    "tasks 4/4\n"
)
REPORT = (
    stall(
        "TIMEOUT_EXIT after_idle_iterations=9 sub_class=S1:running-stalled completed=1/9 running=1 "
        "ready=0 waiting=7 orch_done=1 stuck_task_id=0 stuck_core=1", "ERROR",
    )
    + stall(
        "TASK ring=1 task_id=4294967298 state=RUNNING fanin_refcount=1/1 kernels=[aic:1 aiv0:2 "
        "aiv1:3] running_on=[owner_thread=0 cores=[core=1(aic) core=4(aiv0) core=5(aiv1)]]"
    )
    + stall(
        "TASK ring=1 task_id=4294967301 state=WAIT    fanin_refcount=1/3 kernels=[aic:-1 aiv0:4 "
        "aiv1:-1] missing_deps=2"
    )
    + stall("SUMMARY completed=1/9 last_progress_iteration=0 scan_ready=0 scan_waiting=7")
    + stall("CLUSTER cluster_id=0 aic=core0(idle) aiv0=core2(idle) aiv1=core3(idle)")
    + stall(
        "CLUSTER cluster_id=1 aic=core1(busy kernel=1 task=4294967298 cond_reg_state=ack) "
        "aiv0=core4(busy kernel=2 task=4294967298 cond_reg_state=ack) aiv1=core5(idle)"
    )
)  # fmt: skip
FAILED = (
    "[ERROR] validate_runtime_impl: [runtime_maker.cpp:1019] error detail: sched_error_code=100 "
    "SCHEDULER_TIMEOUT - the scheduler saw no forward progress\n"
)
HOST_LINES = ANCHOR + ARENA + RINGS + span("chip.run.bind", 2600, 1000)
STALLED = (
    HOST_LINES
    + STARTS
    + dispatched("aic", RING, "0,-1,-1", "0/1", (3, 1))
    + dispatched("aic", RING + 2, "1,2,3", "0/1", (3, 1), "pending")
    + dispatched("aiv0", RING + 2, "1,2,3", "0/1", (4, 4))
    + dispatched("aiv1", RING + 2, "1,2,3", "0/1", (5, 5))
    + dispatched("aic", RING + 4, "7,-1,-1", "0/1", (3, 1), "pending")
    + REPORT
    + span("chip.run.runner_run", 10_000, 5_000_000_000)
    + FAILED
    + span("chip.run", 2550, 5_000_100_000, depth=0)
    + "E   RuntimeError: finalize_native_run failed with code -100\n"
)
# The AIC part of a block went to core 3, an AIV, as when the place of its group wrapped in a mask.
WRONG_CORE = (
    HOST_LINES
    + STARTS
    + stall(
        "TASK ring=0 task_id=0 state=RUNNING fanin_refcount=1/1 kernels=[aic:0 aiv0:1 aiv1:2] "
        "running_on=[owner_thread=0 cores=[core=3(aic)]]"
    )
    + stall("CLUSTER cluster_id=0 aic=core0(idle) aiv0=core2(idle) aiv1=core3(idle)")
    + span("chip.run.runner_run", 10_000, 5_000_000_000)
)
_ORCHESTRATOR = "[ERROR] check_scope_can_accept_task: [pto_orchestrator.cpp:573] "
DEADLOCK = (
    HOST_LINES
    + "[INFO] pre_handshake_init: [scheduler_cold_path.cpp:1194] Handshaking with 6 cores\n"
    + f"{_ORCHESTRATOR}FATAL: Scope Deadlock Detected! (ring 1)\n"
    + f"{_ORCHESTRATOR}Tasks in current scope (3) >= task_window_size (4).\n"
    + "[DEBUG] mark_done: [pto.cpp:1] === [Orchestrator] ring 1: total_tasks=3 ===\n"
    + span("chip.run.runner_run", 10_000, 9_000_000)
    + FAILED.replace("SCHEDULER_TIMEOUT", "SCOPE_DEADLOCK")
)
RUNTIME_LOGS = {"whole": WHOLE, "stalled": STALLED, "wrong": WRONG_CORE, "deadlock": DEADLOCK}
