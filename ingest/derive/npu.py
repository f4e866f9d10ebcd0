"""Kernels of an Ascend NPU: the cores that each ran on, named as in core groups."""

from __future__ import annotations

import polars as pl

TASK_TYPE = r'"(?:Task Type|type)"\s*:\s*"([^"\\]{1,64})"'
"""The type of a task in its args: `Task Type` of msprof, `type` of torch_npu through kineto."""
NPU_KERNELS = "npu_kernels"
"""Configuration key: the number of kernels by cores, `{"AIC": 3, "MIX": 2}`."""
_CORES = {
    "AI_CORE": "AIC", "AICORE": "AIC", "AIC": "AIC",
    "AI_VECTOR_CORE": "AIV", "AIVEC": "AIV", "AIV": "AIV", "AIV_SQE": "AIV",
}  # fmt: skip


def core_shape(task_type: pl.Expr) -> pl.Expr:
    """Return AIC, AIV or MIX (for MIX_AIC and MIX_AIV); null for tasks on other cores."""
    plain = _plain(task_type)
    named = plain.replace_strict(_CORES, default=None, return_dtype=pl.String)
    return pl.when(plain.str.starts_with("MIX")).then(pl.lit("MIX")).otherwise(named)


def work_category(task_type: pl.Expr) -> pl.Expr:
    """Return the category of such work in torch.profiler: kernel, gpu_memcpy or gpu_memset.

    Null for tasks that are no work: events, notifications, written values, labels.
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
