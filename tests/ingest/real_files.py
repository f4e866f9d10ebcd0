"""Files that real programs wrote: the project's samples, and other people's where present."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT

SHARED = ROOT.parent / "shared"
OWN_PROFILES = {
    "torch_profiler_cpu": "torch_profiler_cpu.json.gz",
    "gloo_rank0": "torch_gloo_two_ranks/rank0.json.gz",
    "gloo_rank1": "torch_gloo_two_ranks/rank1.json.gz",
    "jax_cpu": "jax_cpu/cpu.xplane.pb.gz",
}
OWN_TORCH = ("torch_profiler_cpu", "gloo_rank1")
GLOO = ROOT / "sample_traces" / "torch_gloo_two_ranks"


def profile(name: str) -> Path:
    """Return a profile of our own, or one of ../shared; skips where that is absent."""
    if name in OWN_PROFILES:
        return ROOT / "sample_traces" / OWN_PROFILES[name]
    return shared_file(f"data/kineto/{name}.json.gz")


def shared_file(name: str) -> Path:
    """Return a file or folder of ../shared; skips where it is absent."""
    file = SHARED / name
    if not file.exists():
        pytest.skip(f"the folder of real files, ../shared/{name.partition('/')[0]}, is absent")
    return file
