"""Random configurations: every setting of a scenario from its whole range, small enough to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from stepscope.engine.faults import Fault

Draw = Callable[[Random], str]


@dataclass(frozen=True, slots=True)
class Configuration:
    """One run of a scenario; `command` is what repeats it."""

    scenario: str
    variant: str
    settings: Mapping[str, str]
    seed: int
    fault: str | None = None
    executor: str | None = None

    @property
    def command(self) -> str:
        """The command line that records it."""
        given = "".join(f" --set {key}={value}" for key, value in self.settings.items())
        fault = f" --fault {self.fault}" if self.fault else ""
        executor = f" --executor {self.executor}" if self.executor else ""
        return (
            f"stepscope record {self.scenario} --variant {self.variant} --seed {self.seed}"
            f"{executor}{fault}{given}"
        )


def among(*choices: object) -> Draw:
    """One of these, each as likely."""
    return lambda random: str(random.choice(choices))


def between(least: int, most: int) -> Draw:
    """A whole number, whose order of magnitude is even: 1 to 9 as often as 10 to 99."""
    ratio = (most + 1) / max(1, least)

    def draw(random: Random) -> str:
        if not least and random.random() < 0.2:
            return "0"
        return str(min(most, int(max(1, least) * ratio ** random.random())))

    return draw


def mostly(usual: object, other: Draw) -> Draw:
    """The usual one in four of five."""
    return lambda random: str(usual) if random.random() < 0.8 else other(random)


def half(usual: object, other: Draw) -> Draw:
    """The usual one in every second."""
    return lambda random: str(usual) if random.random() < 0.5 else other(random)


# What a scenario's fixed variants are: those that a report's fault is no part of.
FIXED: Mapping[str, tuple[str, ...]] = {
    "mix-admission": ("after", "after", "barrier"),
    "fcfs-preemption": ("after",),
    "slot-recycling": ("after", "device-write"),
    "ep-multiplexing": ("after", "after", "v2-host-staging", "v2-device-staging"),
    "mixed-batches": (  # those without mixed batches are as asked for, and drafts need them
        "after",
        "after",
        "deferred",
        "decode-first",
        "no-threshold",
        "data-parallel",
        "flag-off",
        "mtp",
    ),
    "waiting-queue": ("after",),
}
RANGES: Mapping[str, Mapping[str, Draw]] = {
    "mix-admission": {
        "admission": mostly(
            "as-variant",
            among(
                "aic-free",
                "all-free",
                "all-idle-or-pending",
                "uniform",
                "per-core-slot",
                "barrier",
                "reserve-group",
            ),
        ),
        "workload": among(
            "moe-interleaved",
            "moe-layer",
            "paged-attention",
            "qwen3-layer",
            "mix-starvation",
            "sync-mix-spill",
            "mix-flood",
        ),
        "groups": between(1, 32),
        "threads": between(1, 8),
        "steps": between(1, 3),
        "requests": between(1, 16),
        "prompt_len": between(1, 1024),
        "task_slots": mostly(16384, between(1, 4096)),
        "heap_kib": mostly(262144, between(1, 65536)),
        "dep_entries": mostly(16384, between(1, 4096)),
        "late_part": among("waits", "waits", "corrupts", "hangs"),
        "author_barriers": mostly("none", among("before-mix", "around-mix")),
    },
    "fcfs-preemption": {
        "requests": between(1, 48),
        "prompt_len": between(1, 320),
        "max_tokens": between(1, 128),
        "burst": between(1, 24),
        "gap_ms": between(0, 8000),
        "images": half("none", lambda random: f"every-{between(1, 12)(random)}"),
        "urgent": half(0, between(1, 12)),
        "jitter_ms": between(0, 500),
        "num_kv_blocks": between(4, 400),
        "block_size": between(1, 64),
        "patience": between(0, 128),
        "deadline": lambda random: f"{random.uniform(1, 3):.2f}",
        "completions": mostly("as-variant", among("jagged", "bucketed")),
        "bucket": mostly("as-variant", among("oldest", "shortest")),
        "order": mostly("as-variant", among("fcfs", "newest-first")),
        "victims": mostly("as-variant", among("until-it-fits", "one")),
        "incompatible": mostly("as-variant", among("defer", "preempt", "requeue")),
        "nothing_fits": mostly("as-variant", among("hold", "ignore")),
    },
    "slot-recycling": {
        "slots": between(1, 12),
        "requests": between(1, 32),
        "max_cap": between(1, 48),
        "eos_after": between(0, 24),
        "ignore_eos": among("true", "false"),
        "slot_tokens": between(8, 256),
        "token_bytes": between(1, 65536),
        "round_trip": among("per-admission", "per-step"),
    },
    "ep-multiplexing": {
        "requests": between(1, 6),
        "slots": between(1, 6),
        "max_tokens": between(1, 16),
        "stagger": between(0, 6),
        "long_tokens": mostly(0, between(1, 48)),
        "client_timeout_s": mostly("0.0", among("0.5", "2.0", "5.0")),
        "prompt_len": between(1, 32),
        "slot_tokens": between(8, 128),
        "ranks": between(1, 4),
        "failing_prompts": mostly(0, between(1, 4)),
        "verify_width": mostly(1, between(1, 5)),
        "codebook": mostly("", among("allocate=0xFFFFFF05", "prefill=0xFFFFFF07")),
        # On a real clock half a second passes while a busy machine does something else.
        "timeout_s": mostly("30.0", among("5.0", "10.0")),
    },
    "mixed-batches": {
        "workload": among("report", "concurrent-2048", "v4", "closed-loop"),
        "requests": between(1, 32),
        "prompt_len": between(1, 4096),
        "max_tokens": between(1, 64),
        "shared_prefix": mostly(0, between(1, 2048)),
        "budget": between(16, 4096),
        "threshold": between(1, 4096),
        "max_num_seqs": between(1, 64),
        "block_size": between(1, 64),
        "kv_blocks": mostly(0, between(16, 4096)),
        "prefix_cache": among("true", "false"),
        "deferred": mostly("as-variant", among("true", "false")),
        "mtp_k": mostly(0, between(1, 4)),
        "backend": among("v4", "mla"),
        "tbo": mostly("false", among("true")),
        "acceptance": lambda random: f"{random.random():.2f}",
        "turnaround_ns": between(0, 20000),
        "layers": between(1, 3),
        "experts": mostly(0, among(2, 4)),
        "window": mostly(0, among(4, 8)),
        "ratios": among("4", "128", "4+128", "0+4+128"),
        "attention_chunk": between(1, 32),
    },
    "waiting-queue": {
        "workload": among(
            "stream", "four-prompts", "parked", "heavy-head", "half-the-pool", "too-long"
        ),
        "requests": between(1, 48),
        "prompt_len": between(1, 4096),
        "max_tokens": between(1, 128),
        "max_num_seqs": between(1, 64),
        "budget": between(64, 8192),
        "kv_blocks": between(64, 4096),
        "block_size": between(1, 64),
        "timeout_s": between(1, 600),
        "per_minute": between(1, 2000),
        "video_blocks": between(0, 512),
        "decode_rounds": between(0, 8),
        "max_prefills": mostly(0, between(1, 8)),
        "max_passes": mostly(8, between(0, 32)),
        "loads": among("reserved", "lateral"),
    },
}

# Sizes of what a decoder computes, token by token, and every request alone besides.
DECODED: Mapping[str, Mapping[str, Draw]] = {
    "slot-recycling": {"requests": between(1, 8), "max_cap": between(1, 16)},
    "mixed-batches": {
        "requests": between(1, 8), "prompt_len": between(1, 96), "max_tokens": between(1, 12),
        "budget": between(16, 256), "threshold": between(1, 256), "max_num_seqs": between(1, 16),
        "block_size": between(1, 16), "kv_blocks": mostly(0, between(8, 256)),
    },
}  # fmt: skip

# Sizes that runs of faults always have as drawn, because the usual ones take long.
SIZES: Mapping[str, tuple[str, ...]] = {
    "mixed-batches": ("requests", "prompt_len", "max_tokens", "kv_blocks"),
    "waiting-queue": ("requests",),
}

# What a fault needs so that it shows more often than once in a hundred configurations.
NEAR: Mapping[str, Mapping[str, Draw]] = {
    "prefill-eats-the-budget": {
        "requests": between(16, 32), "prompt_len": between(512, 4096), "budget": between(64, 512),
    },
    "no-request-cap": {"prompt_len": between(512, 4096), "budget": between(64, 1024)},
    "reserve-for-max-num-seqs": {
        "max_num_seqs": among(256), "requests": between(2, 32), "budget": between(256, 8192),
        "prompt_len": between(256, 4096), "max_tokens": between(16, 64),
    },
    "slow-worker": {"ranks": among(2, 3, 4)},
    "victim-in-batch": {
        "requests": between(8, 32), "prompt_len": between(8, 64), "max_tokens": between(24, 64),
        "block_size": between(1, 8), "kv_blocks": between(32, 256),
    },
    "dealt-to-one-rank": {
        "requests": between(16, 32), "prompt_len": between(16, 512),
        "max_tokens": between(32, 900),
    },
}  # fmt: skip


def configuration(scenario: str, seed: int, executor: str | None = None) -> Configuration:
    """Draw one of a fixed variant; the same seed gives the same one."""
    random = Random(f"{scenario} {seed}")
    sizes = DECODED.get(scenario, {}) if executor == "torch" else {}
    settings = {key: draw(random) for key, draw in {**RANGES[scenario], **sizes}.items()}
    variant = random.choice(FIXED[scenario])
    return Configuration(scenario, variant, settings, random.randrange(1000), executor=executor)


def of_fault(fault: Fault, seed: int) -> Configuration:
    """Draw one of the variant that shows `fault`, around the settings under which it does.

    Half of the other settings are as drawn; sizes always are, where the usual ones take long.
    """
    random = Random(f"{fault.name} {seed}")
    drawn = {key: draw(random) for key, draw in RANGES[fault.scenario].items()}
    drawn |= {key: draw(random) for key, draw in NEAR.get(fault.name, {}).items()}
    sizes = {*SIZES.get(fault.scenario, ()), *NEAR.get(fault.name, ())}
    kept = {key: value for key, value in drawn.items() if random.random() < 0.5 or key in sizes}
    needed = {key: value for key, value in fault.settings.items() if key not in sizes}
    settings = kept | needed
    return Configuration(
        fault.scenario, fault.variant, settings, random.randrange(1000), fault.name
    )
