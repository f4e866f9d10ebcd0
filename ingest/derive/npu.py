"""Kernels of an Ascend NPU: which of its cores each ran on, in the words of core groups."""

from __future__ import annotations

import polars as pl

TASK_TYPE = r'"(?:Task Type|type)"\s*:\s*"([^"\\]{1,64})"'
"""A task's type in its args: `Task Type` of msprof, and `type` of torch_npu through kineto."""
NPU_KERNELS = "npu_kernels"
"""Where the configuration says how many kernels ran on which cores: `{"AIC": 3, "MIX": 2}`."""
_CORES = {
    "AI_CORE": "AIC", "AICORE": "AIC", "AIC": "AIC",
    "AI_VECTOR_CORE": "AIV", "AIVEC": "AIV", "AIV": "AIV", "AIV_SQE": "AIV",
}  # fmt: skip


def core_shape(task_type: pl.Expr) -> pl.Expr:
    """AIC, AIV or MIX (MIX_AIC and MIX_AIV alike); null for what runs on neither kind of core."""
    plain = _plain(task_type)
    named = plain.replace_strict(_CORES, default=None, return_dtype=pl.String)
    return pl.when(plain.str.starts_with("MIX")).then(pl.lit("MIX")).otherwise(named)


def work_category(task_type: pl.Expr) -> pl.Expr:
    """The category that torch.profiler gives such work: kernel, gpu_memcpy, gpu_memset.

    Null for what does none: events, notifications, values written, labels.
    """
    plain = _plain(task_type)
    return (
        pl.when(plain.str.contains("MEMCPY|SDMA|PCIE_DMA")).then(pl.lit("gpu_memcpy"))
        .when(plain.str.contains("MEMSET")).then(pl.lit("gpu_memset"))
        .when(plain.str.contains(r"^(?:AI_?(?:CORE|CPU)|AI_?VEC|AI[CV](?:_|$)|MIX|HCCL_AI_?CPU)"
                                 r"|^(?:FFTS_PLUS|SIMT|DSA|DVPP|COMMUNICATION|FUSION|CCU)"))
        .then(pl.lit("kernel"))
    )  # fmt: skip


def _plain(task_type: pl.Expr) -> pl.Expr:
    """A type in one spelling: `KERNEL_AICORE` as `AICORE`, `Notify Wait` as `NOTIFY_WAIT`."""
    plain = task_type.str.to_uppercase().str.replace_all(" ", "_", literal=True)
    return plain.str.replace(r"^KERNEL_", "")
