"""What profiles call collectives: kernels, annotations, and one spelling of their operations."""

from __future__ import annotations

import polars as pl

CALL = "record_param_comms"
NOT_COLLECTIVE = ("wait", "init")
BLOCKING = ("allreduce", "allgather", "allgatherv", "barrier", "reducescatter", "alltoall")
"""Nobody leaves these before all have entered; the root of a broadcast does."""
TOGETHER = ("allreduce", "allgather", "barrier", "reducescatter")
"""Of these, all get the last of the data at one time, too, whatever anybody sent."""
PAIRWISE = ("send", "recv", "receive", "isend", "irecv", "sendrecv")
"""Between two ranks: neither collectives, nor in the order of these."""
UNEVEN = ("alltoall", "gather", "scatter", "allgatherv")
"""Ranks may come to these with different numbers of elements."""
ON_THE_HOST = ("gloo", "mpi")
"""Backends whose annotations last as long as the work, because no device does it."""

KERNEL = (
    r"^(?:nccl|rccl)(?:Sym[a-z]?)?(?:Dev)?(?:Kernel_)?"
    r"(?:AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|SendRecv|AllToAll|Generic)"
    r"(?:$|[^a-z])"
    r"|^hcom_(?:all[RG]|reduce|broadcast|alltoall|send_|receive_|barrier|batchSend|scatter|gather)"
    r"\w*_|^Hccl(?:All|Reduce|Broadcast|Send|Recv|BatchSend|Scatter|Barrier)"
    r"|(?:^|\W)(?:mscclKernel_|cross_device_reduce_|multimem_all_)"
)
"""Kernels of NCCL and RCCL, new and old, of HCCL, and of engines' own all-reduces."""
ANNOTATION = r"^(nccl|rccl|hccl|xccl|ccl|ucc|gloo|mpi):_?([A-Za-z]\w*)"
_OPERATION = (
    r"(?i)(all_?reduce|all_?gather|reduce_?scatter|broadcast|send_?recv|all_?to_?all"
    r"|barrier|send|receive|reduce)"
)
_ALL_REDUCE = "cross_device_reduce_"
_MORE = r"(?:base|coalesced|tensor|single|into|oop)+$"
_SPELT = {"allreducebarrier": "barrier", "alltoallv": "alltoall"}


def is_kernel(name: pl.Expr) -> pl.Expr:
    """Whether a kernel of that name is a collective's, or sends something to another rank."""
    return name.str.contains(KERNEL).fill_null(value=False)


def operation_of(name: pl.Expr) -> pl.Expr:
    """The operation that a kernel is named for; null where one kernel serves all of them."""
    said = name.str.extract(_OPERATION).str.to_lowercase().str.replace_all("_", "", literal=True)
    engines_own = name.str.contains(_ALL_REDUCE, literal=True)
    return pl.when(engines_own).then(pl.lit("allreduce")).otherwise(said)


def kind_of(op: pl.Expr) -> pl.Expr:
    """An operation in one spelling: small letters, without a backend and what tells of its form."""
    letters = op.str.to_lowercase().str.split(":").list.last().str.replace_all(r"[^a-z]", "")
    return letters.str.replace(_MORE, "").replace(_SPELT)
