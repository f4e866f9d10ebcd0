"""Results of serving benchmarks: `vllm bench serve` and SGLang's `bench_serving`."""
