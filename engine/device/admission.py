"""When may a MIX take a core group? The answers of the report and of the runtime's history.

A MIX block needs several cores of one group. A scheduler thread asks its groups in order, twice in
a pass: `admits_idle` while looking for cores to run it on at once, `admits_pending` while looking
for pending slots to put it into. Whatever the policy answers, each needed core must have a slot
free: the silicon has no third one. A part lands in its core's running slot when that core is idle
and in its pending slot when it is busy, so a policy that admits a partly busy group splits the
block: one part holds its core while another waits behind an earlier task.

Adding a policy is one class and one line in `ADMISSIONS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stepscope.engine.device.topology import Core, Device, Group
from stepscope.engine.named import named


class Admission(Protocol):
    """One policy: `name` as the command line spells it, `rule` in one line.

    `needed` are the cores of `group` that the block takes.
    """

    name: str
    rule: str

    def admits_idle(self, group: Group, needed: Sequence[Core], device: Device) -> bool:
        """Whether a MIX may take the group to run at once."""
        ...

    def admits_pending(self, group: Group, needed: Sequence[Core]) -> bool:
        """Whether a MIX may be put behind what the group runs; never, by default."""
        return False

    def lends_idle(self, core: Core, group: Group) -> bool:
        """Whether an AIC-only or AIV-only block may take an idle core; always, by default."""
        return True

    def lends_pending(self, core: Core, group: Group) -> bool:
        """Whether an AIC-only or AIV-only block may wait behind a busy core; always, by default."""
        return True


class AicFree(Admission):
    """The reported scheduler: the AIC decides, the AIVs are not asked."""

    name = "aic-free"
    rule = "AIC free, AIVs not consulted"

    def admits_idle(self, group: Group, needed: Sequence[Core], device: Device) -> bool:
        """A free AIC is enough."""
        return group.cores[0].is_idle


class AllIdleOrPending(Admission):
    """Two phases: an idle group, else any group with room to queue, slot by slot."""

    name = "all-idle-or-pending"
    rule = "all three cores idle, or no pending slot taken"

    def admits_idle(self, group: Group, needed: Sequence[Core], device: Device) -> bool:
        """All three cores are idle."""
        return group.is_free

    def admits_pending(self, group: Group, needed: Sequence[Core]) -> bool:
        """Some core is busy; the dispatcher has seen that every slot is free."""
        return not group.is_free


class Uniform(Admission):
    """One placement for the whole block: run it, or make it pending, or put it back."""

    name = "uniform"
    rule = "every needed core idle, or every one busy with its pending slot free"

    def admits_idle(self, group: Group, needed: Sequence[Core], device: Device) -> bool:
        """All needed cores are idle."""
        return all(core.is_idle for core in needed)

    def admits_pending(self, group: Group, needed: Sequence[Core]) -> bool:
        """All needed cores are busy; the dispatcher has seen that there is room behind them."""
        return not any(core.is_idle for core in needed)


class PerCoreSlot(Admission):
    """Each core finds its own slot; a group is refused only for a pending slot that is taken."""

    name = "per-core-slot"
    rule = "no needed pending slot is taken"

    def admits_idle(self, group: Group, needed: Sequence[Core], device: Device) -> bool:
        """Any group with room, in order, idle or not."""
        return True


class AllFree(Admission):
    """The guard that the report asks for."""

    name = "all-free"
    rule = "AIC and both AIVs free"

    def admits_idle(self, group: Group, needed: Sequence[Core], device: Device) -> bool:
        """AIC free and every AIV of the group free."""
        return group.is_free


class Barrier(Admission):
    """The report's first alternative: vector work drains before any MIX starts."""

    name = "barrier"
    rule = "AIC and both AIVs free, and no AIV-only block in flight anywhere"

    def admits_idle(self, group: Group, needed: Sequence[Core], device: Device) -> bool:
        """The whole device has drained its AIV-only blocks."""
        return device.num_vector_blocks == 0 and group.is_free


class ReserveGroup(Admission):
    """The report's second alternative: an AIV-only block keeps its whole group to itself."""

    name = "reserve-group"
    rule = "AIC and both AIVs free, not reserved by an AIV-only block"

    def admits_idle(self, group: Group, needed: Sequence[Core], device: Device) -> bool:
        """AIC free and every AIV of the group free."""
        return group.is_free

    def lends_idle(self, core: Core, group: Group) -> bool:
        """An AIV-only block needs a free group; an AIC-only block one that is not reserved."""
        return not group.has_vector_task if core is group.cores[0] else group.is_free

    def lends_pending(self, core: Core, group: Group) -> bool:
        """Nothing waits behind a vector core: its group is reserved block by block."""
        return core is group.cores[0]


ADMISSIONS: tuple[Admission, ...] = (
    AicFree(),
    AllFree(),
    AllIdleOrPending(),
    Uniform(),
    PerCoreSlot(),
    Barrier(),
    ReserveGroup(),
)


def admission(name: str) -> Admission:
    """The policy of that name; raises ConfigError naming all of them for any other."""
    return named(name, ADMISSIONS, "admission policy")
