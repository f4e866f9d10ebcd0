"""One member of the group, put together: link, log, wire and its share of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.engine.clock import Clock
from stepscope.engine.parallel.costs import Costs
from stepscope.engine.parallel.links.command_wire import Wire
from stepscope.engine.parallel.links.link import Link
from stepscope.engine.parallel.links.transport import Disconnected, Transport
from stepscope.engine.parallel.protocol import ProtocolError
from stepscope.engine.parallel.rank_config import ParallelConfig
from stepscope.engine.parallel.ranks.worker import Observer, Worker
from stepscope.engine.parallel.shares.access_log import AccessLog
from stepscope.engine.parallel.shares.share import Share
from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Mapping
SHUT_DOWN = "it was shut down"


@dataclass(frozen=True, slots=True)
class Journal:
    """Where every rank records, into one trace, and what its manifest says."""

    path: Path
    producer: str
    scenario: str
    variant: str
    clock: ClockInfo

    def recorder(self, rank: int, config: Mapping[str, object]) -> Recorder:
        """Return a recorder of `rank`'s rows."""
        return Recorder(
            self.path, producer=self.producer, clock=self.clock, rank=rank, config=dict(config),
            scenario=self.scenario, variant=self.variant,
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return {**asdict(self), "path": str(self.path)}

    @classmethod
    def from_dict(cls, fields_of: Mapping[str, Any]) -> Journal:
        """Return what `as_dict` gave."""
        path, clock = Path(fields_of["path"]), ClockInfo(**fields_of["clock"])
        return cls(**{**fields_of, "path": path, "clock": clock})


class Member:
    """What a rank needs to take part: `transport`, a clock, and a recorder if it is to record.

    `spend` lets virtual time pass, and does nothing where time is real.
    """

    def __init__(
        self,
        config: ParallelConfig,
        transport: Transport,
        clock: Clock,
        recorder: Recorder | None,
        spend: Callable[[int], object],
        costs: Costs,
    ) -> None:
        self.config = config
        self.clock = clock
        self.recorder = recorder
        self.spend = spend
        self.costs = costs
        is_guarded = "collective-at-world-size-1" not in config.faults
        self.link = Link(transport, clock, recorder, is_guarded=is_guarded)
        self.log = AccessLog(clock, recorder)
        self.share = Share(config, self.link, self.log, spend, costs, clock)
        self.wire = Wire(self.link, config.version(transport.rank), config.codebook)
        config.codebook.check(self.share.vocab_size, config.num_slots)
        if recorder:
            version = float(self.wire.version)
            recorder.counters(0, clock.now_ns(), "protocol", "protocol version", None, version)


def no_time(ns: int) -> None:
    """Let no virtual time pass, where time is real."""


def serve(member: Member, observer: Observer | None = None) -> str:
    """Do what the head says until the end, then leave; return why it ended.

    `observer` is shown what the worker holds at each of its steps.
    """
    why = SHUT_DOWN
    try:
        Worker(
            member.wire, member.share, member.clock, member.recorder, member.config.faults,
            observer,
        ).serve()  # fmt: skip
    except Disconnected as error:
        why = str(error)
    except ProtocolError as error:
        why = f"it refused: {error}"
    except Exception as error:  # a rank that fails silently leaves the others waiting
        why = f"a bug in the worker: {type(error).__name__}: {error}"
    finally:
        member.link.leave(why)
    return why
