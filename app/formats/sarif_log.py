"""The objects of SARIF 2.1.0 that we write, under the names that its schema gives them.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0. What is None is
left out; tests hold a whole log against the schema.
"""

from __future__ import annotations

from typing import Any

import msgspec

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION = "2.1.0"
Properties = dict[str, Any]


class _Object(msgspec.Struct, rename="camel", omit_defaults=True):
    pass


class Message(_Object):
    """What is said, as plain text and, for viewers that can, as Markdown."""

    text: str
    markdown: str | None = None


class ArtifactLocation(_Object):
    """Where a file is: relative to the repository's root, or an absolute `file:` address."""

    uri: str
    index: int | None = None


class Region(_Object, omit_defaults=False):
    """A part of a file; GitHub asks for one, and a trace has no lines."""

    start_line: int = 1


class PhysicalLocation(_Object):
    """A place in a file."""

    artifact_location: ArtifactLocation
    region: Region


class LogicalLocation(_Object):
    """A place by what it is: a step, a request, a core."""

    name: str
    kind: str


class Location(_Object):
    """A place in a file, and what it is a place of."""

    physical_location: PhysicalLocation
    logical_locations: list[LogicalLocation] | None = None


class Result(_Object):
    """One finding."""

    rule_id: str
    rule_index: int
    level: str
    message: Message
    locations: list[Location]
    partial_fingerprints: dict[str, str]
    occurrence_count: int
    properties: Properties


class Configuration(_Object):
    """How bad a rule's findings are, where nothing else is said."""

    level: str


class Rule(_Object):
    """A rule: `reportingDescriptor` in the schema."""

    id: str
    name: str
    short_description: Message
    full_description: Message
    help: Message
    default_configuration: Configuration
    properties: Properties


class Driver(_Object):
    """The program that found all this: `toolComponent` in the schema."""

    name: str
    rules: list[Rule]
    semantic_version: str | None = None


class Tool(_Object):
    """The program and its extensions, of which we have none."""

    driver: Driver


class Notification(_Object):
    """Something about the run itself."""

    level: str
    message: Message


class Invocation(_Object):
    """How the run went."""

    execution_successful: bool
    tool_execution_notifications: list[Notification] | None = None


class Artifact(_Object):
    """A file that was looked at."""

    location: ArtifactLocation


class Run(_Object):
    """All that was found at once."""

    tool: Tool
    invocations: list[Invocation]
    artifacts: list[Artifact]
    results: list[Result]
    column_kind: str = "unicodeCodePoints"


class Log(_Object, kw_only=True, omit_defaults=False):
    """A whole file."""

    schema: str = msgspec.field(default=SCHEMA, name="$schema")
    version: str = VERSION
    runs: list[Run]
