"""What rows of an export say: spans of the device and of threads, with their names and arguments.

The format: "SQLite Schema Reference" of Nsight Systems,
https://docs.nvidia.com/nsight-systems/UserGuide/index.html#exporting-and-querying-data
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PUSH_POP, START_END, MARK, DOMAIN = 59, 60, 34, 75
"""Types of NVTX events: ranges, marks, and the name of a domain; others are names as well."""
COPY_KINDS = {
    0: "Unknown", 1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA",
    8: "DtoD", 9: "HtoH", 10: "PtoP", 11: "Unified HtoD", 12: "Unified DtoH", 13: "Unified DtoD",
}  # fmt: skip
"""As CUPTI numbers them, spelled as torch.profiler does."""
SYNC_KINDS = {
    1: "Event Synchronize", 2: "Stream Wait Event", 3: "Stream Synchronize",
    4: "Context Synchronize",
}  # fmt: skip
API_VERSION = r"_v\d+(?:_ptsz|_ptds)?$"
"""What stands behind the name of a call, and of which header it is."""


DEVICE_PLACE = ("globalPid", "deviceId", "contextId", "streamId")
THREAD_PLACE = ("globalTid", "eventClass")


@dataclass(frozen=True, slots=True)
class Source:
    """A table whose rows are spans.

    table       its name
    category    what torch.profiler calls such spans
    names       columns with numbers of texts, the best first
    kind        the column with a number that stands in the name, where there is no text
    kinds       texts for these numbers
    prefix      what stands before it
    on_device   whether it ran in a stream of a device, else on a thread
    args        columns that become arguments, by what torch.profiler calls them
    """

    table: str
    category: str
    names: tuple[str, ...] = ()
    kind: str | None = None
    kinds: Mapping[int, str] = field(default_factory=dict)
    prefix: str = ""
    on_device: bool = False
    args: Mapping[str, str] = field(default_factory=dict)

    def columns(self) -> dict[str, str]:
        """The columns that are asked for, by name: all of them numbers."""
        place = DEVICE_PLACE if self.on_device else THREAD_PLACE
        kind = (self.kind,) if self.kind else ()
        asked = ("start", "end", "correlationId", *place, *self.names, *kind, *self.args)
        return dict.fromkeys(asked, "integer")


_GRID = {name: f"{what} {axis}" for what in ("grid", "block") for axis in "XYZ"
         for name in (f"{what}{axis}",)}  # fmt: skip
_KERNEL_ARGS = {
    **_GRID, "registersPerThread": "registers per thread",
    "staticSharedMemory": "static shared memory", "dynamicSharedMemory": "dynamic shared memory",
    "graphNodeId": "graph node id",
}  # fmt: skip
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
SOURCES = (
    Source("CUPTI_ACTIVITY_KIND_KERNEL", "kernel", ("demangledName", "shortName", "mangledName"),
           on_device=True, args=_KERNEL_ARGS),
    Source("CUPTI_ACTIVITY_KIND_MEMCPY", "gpu_memcpy", kind="copyKind", kinds=COPY_KINDS,
           prefix="Memcpy ", on_device=True, args={"bytes": "bytes"}),
    Source("CUPTI_ACTIVITY_KIND_MEMSET", "gpu_memset", prefix="Memset", on_device=True,
           args={"bytes": "bytes", "value": "value"}),
    Source(GRAPHS, "kernel", kind="graphId", prefix="CUDA graph ", on_device=True),
    Source("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "cuda_sync", kind="syncType", kinds=SYNC_KINDS,
           on_device=True),
    Source(CALLS, "cuda_runtime", ("nameId",), args={"returnValue": "return value"}),
    Source("CUPTI_ACTIVITY_KIND_OVERHEAD", "overhead", ("nameId",)),
    Source("PROFILER_OVERHEAD", "overhead", ("nameId",)),
    Source("OSRT_API", "os_runtime", ("nameId",), args={"returnValue": "return value"}),
    Source("CUBLAS_EVENTS", "cublas", ("nameId",)),
    Source("CUDNN_EVENTS", "cudnn", ("nameId",)),
)  # fmt: skip
"""Where an export says what the device and the threads did."""
DRIVER_CLASS = 1
"""The class of a call of the driver, in the table of calls; the others are of the runtime."""
NVTX = "NVTX_EVENTS"
NVTX_CATEGORY = "user_annotation"
NVTX_COLUMNS = {
    **dict.fromkeys(("start", "end", "eventType", "globalTid", "endGlobalTid", "textId"),
                    "integer"),
    "text": "text", "domainId": "integer",
}  # fmt: skip
DIAGNOSTICS = "DIAGNOSTIC_EVENT"
DIAGNOSTIC_COLUMNS = {"severity": "integer", "text": "text"}
SEVERITIES = {3: "error", 2: "warning"}
"""As `ENUM_DIAGNOSTIC_SEVERITY_LEVEL` numbers them; the others are information."""
METRICS = "GPU_METRICS"
METRIC_COLUMNS = {
    **dict.fromkeys(("timestamp", "typeId", "metricId"), "integer"), "value": "real",
}  # fmt: skip
METRIC_NAMES = {**dict.fromkeys(("typeId", "metricId"), "integer"), "metricName": "text"}
