"""Hypothesis strategies for what an engine may be given."""

from __future__ import annotations

from hypothesis import strategies as st

from stepscope.engine.config import EngineConfig
from stepscope.engine.schedulers.bucketed import KNOBS, Bucketed
from stepscope.engine.workloads.workload import RequestSpec

_lengths = st.tuples(st.integers(0, 12), st.integers(1, 9), st.integers(1, 6))
_modality = st.sampled_from(["text", "image"])
requests = st.lists(st.tuples(_lengths, _modality), min_size=1, max_size=12).map(
    lambda drawn: [
        RequestSpec(f"r{i}", arrival_ns, prompt_len, max_tokens, modality=modality)
        for i, ((arrival_ns, prompt_len, max_tokens), modality) in enumerate(drawn)
    ]
)
sizes = st.builds(
    EngineConfig,
    num_kv_blocks=st.integers(4, 16),
    block_size=st.integers(1, 4),
    max_num_seqs=st.integers(1, 8),
    max_num_batched_tokens=st.integers(14, 32),
    num_slots=st.sampled_from([0, 3]),
)
# A queue that is put back on itself never ends; a test of its own shows that it is stopped.
knobs = st.builds(
    Bucketed,
    **{
        knob: st.sampled_from([choice for choice in choices if choice != "requeue"])
        for knob, choices in KNOBS.items()
    },
    patience=st.integers(0, 4),
)
