"""JSON of rocprofv3, the profiler of ROCm."""
