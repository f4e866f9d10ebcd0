"""Make `jax_cpu/cpu.xplane.pb.gz`: a small jitted decoder under JAX's profiler on a CPU.

    python sample_traces/make_xplane.py

Needs `jax`, which no extra of the project brings. Eight steps of two layers, each marked with
`StepTraceAnnotation` as a training loop or an engine does. Times differ from run to run, and so do
the events of XLA's threads; steps do not.
"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

OUT = Path(__file__).with_name("jax_cpu") / "cpu.xplane.pb.gz"
NUM_STEPS, NUM_LAYERS, WIDTH = 8, 2, 32


@jax.jit
def decode(hidden: Any, layers: Any) -> Any:
    """Run every layer, and give the hidden state of the next step."""
    for layer in layers:
        hidden = hidden + jnp.tanh(hidden @ layer)
    return hidden / jnp.linalg.norm(hidden, axis=-1, keepdims=True)


def main() -> None:
    """Compile, then run the steps under the profiler, and pack what it writes."""
    keys = jax.random.split(jax.random.PRNGKey(0), NUM_LAYERS + 1)
    layers = tuple(jax.random.normal(key, (WIDTH, WIDTH)) for key in keys[1:])
    hidden = jax.random.normal(keys[0], (4, WIDTH))
    decode(hidden, layers).block_until_ready()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.enable_hlo_proto = False
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            for number in range(1, NUM_STEPS + 1):
                with jax.profiler.StepTraceAnnotation("decode", step_num=number):
                    hidden = decode(hidden, layers)
                    hidden.block_until_ready()
        (file,) = Path(folder).rglob("*.xplane.pb")
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    main()
