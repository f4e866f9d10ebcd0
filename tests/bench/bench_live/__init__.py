"""What following a recording costs: from a row recorded to the row in the model, memory, idling."""

from tests.bench.bench_live.following import measure

__all__ = ["measure"]
