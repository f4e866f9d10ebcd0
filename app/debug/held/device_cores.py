"""The cores of a device as a manifest tells them, those that never ran anything included."""

from __future__ import annotations

from stepscope.ingest.manifest import Manifest

KINDS = ("AIC", "AIV0", "AIV1")
MOST = 2**31
"""What a core's number is below, as its column holds it."""


RINGS = {
    "task slots": "num_slots", "heap bytes": "num_heap_bytes", "dependency entries": "num_entries",
}  # fmt: skip


def ring_sizes(manifest: Manifest) -> dict[str, int]:
    """How much each ring of a device holds, as far as the manifest tells it."""
    device = manifest.config.get("device")
    rings = device.get("rings") if isinstance(device, dict) else None
    told = {ring: rings.get(key) for ring, key in RINGS.items()} if isinstance(rings, dict) else {}
    return {ring: size for ring, size in told.items() if type(size) is int and 0 <= size < 2**63}


def device_threads(manifest: Manifest) -> dict[int, int]:
    """The scheduler thread of each core, as far as the manifest tells it."""
    device = manifest.config.get("device")
    groups = device.get("groups") if isinstance(device, dict) else None
    return {
        group[kind]: group["thread"]
        for group in (groups if isinstance(groups, list) else ())
        if isinstance(group, dict) and type(group.get("thread")) is int
        for kind in KINDS
        if type(group.get(kind)) is int
    }


def device_cores(manifest: Manifest) -> dict[int, tuple[int, str]]:
    """Group and kind by the number of each core; none where the manifest tells of no device.

    What is not as the reference engine writes it is left out: anybody may write a manifest.
    """
    device = manifest.config.get("device")
    groups = device.get("groups") if isinstance(device, dict) else None
    found: dict[int, tuple[int, str]] = {}
    for number, group in enumerate(groups if isinstance(groups, list) else ()):
        for kind in KINDS if isinstance(group, dict) else ():
            core = group.get(kind)
            if type(core) is int and 0 <= core < MOST:
                found[core] = (number, kind)
    return found
