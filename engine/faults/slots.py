"""Bugs of `slot-recycling`: slots that are filled again, and where outputs end."""

from __future__ import annotations

from stepscope.engine.faults.fault import Fault

SLOTS = "slot-recycling"

SLOT_FAULTS = (
    Fault(
        "skip-mirror-refresh",
        SLOTS,
        "an admission commits the host mirror without refreshing it: live slots go back in time",
        variant="before",
    ),
    Fault(
        "recycle-without-clearing",
        SLOTS,
        "a recycled slot keeps its old length: its owner reads what the one before it wrote",
    ),
    Fault(
        "masked-row-leak",
        SLOTS,
        "the token of an idle row is kept, for the request that had the slot last",
    ),
    Fault(
        "refill-when-drained",
        SLOTS,
        "a freed slot stays idle, with a queue, until every other slot is free too",
    ),
    Fault(
        "one-slot-used",
        SLOTS,
        "a request is let in when nobody runs, and nobody beside it: the other slots stay free",
    ),
    Fault(
        "token-after-eos",
        SLOTS,
        "the end of an output is not looked for: it runs on to its cap",
        settings={"eos_after": "5"},
    ),
    Fault("token-past-cap", SLOTS, "the cap is compared one token too late"),
    Fault(
        "cap-before-eos",
        SLOTS,
        "an output that ends on its cap is told to have been cut",
        settings={"eos_after": "14"},
    ),
)
