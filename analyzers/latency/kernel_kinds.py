"""What a kernel is for, as far as its name tells.

Libraries name their kernels as they like, so each kind is a list of the words that they use: of
cuBLAS, cuDNN, CUTLASS, hipBLASLt (`Cijk_`), Composable Kernel, Triton and the engines' own for
matrix multiplications, of flash attention and its kin for attention, of NCCL, RCCL, NVSHMEM and the
engines' custom all-reduce for communication. The first kind that fits counts: attention kernels
have the types of CUTLASS in their names.
"""

from __future__ import annotations

import polars as pl

from stepscope.ingest.schema import COLLECTIVE

COMMUNICATION = (
    r"(?i)nccl|rccl|nvshmem|msccl|deep_?ep|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all"
    r"|cross_device_reduce|multimem|send_?recv|^hcom_|hccl"
)
ATTENTION = (
    r"(?i)attention|attn|fmha|flash_(?:fwd|bwd|mla)|flash::|Batch(?:Prefill|Decode)With"
    r"|Single(?:Prefill|Decode)With|\bmha_|mla_(?:fwd|decode|prefill|reduce)"
)
GEMM = (
    r"(?i)gemm|gemv|matmul|Cijk_|nvjet|xmma|scudnn|wgrad|dgrad|fprop|fused_moe_kernel"
    r"|splitk|marlin|machete|(?:^|_)(?:add|b)?mm(?:_|$)"
)
KINDS = ("gemm", "attention", "kernel", "communication", "copy")
"""Of what runs at the same time, the first counts: communication beside it costs nothing."""


def kind_of(name: pl.Expr, category: pl.Expr) -> pl.Expr:
    """One of KINDS, as text; `kernel` is any kernel of which the name tells no more."""
    return (
        pl.when(category.str.contains("(?i)mem"))
        .then(pl.lit("copy"))
        .when((category == COLLECTIVE) | name.str.contains(COMMUNICATION))
        .then(pl.lit("communication"))
        .when(name.str.contains(ATTENTION))
        .then(pl.lit("attention"))
        .when(name.str.replace_all("fbgemm", "", literal=True).str.contains(GEMM))
        .then(pl.lit("gemm"))
        .otherwise(pl.lit("kernel"))
    )
