"""Where telemetry is sent, as a user writes it: the address of a collector, over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from stepscope.ingest.errors import ConfigError

SPANS, METRICS = "v1/traces", "v1/metrics"
GRPC_PORT = 4317
_FORM = "an endpoint is http://HOST:PORT or https://HOST:PORT, as http://127.0.0.1:4318"
_HEADERS = "give credentials in OTEL_EXPORTER_OTLP_HEADERS, as a command line is seen by others"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A collector's address, below which each kind of telemetry has its path."""

    base: str
    is_loopback: bool
    port: int | None

    def of(self, path: str) -> str:
        """The address for one kind of telemetry."""
        return f"{self.base}/{path}"


def endpoint_of(text: str) -> Endpoint:
    """Read an address; a path that is one kind's own is the collector's. Raises ConfigError."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigError("it is no address", where=text, todo=_FORM) from None
    if parts.scheme not in ("http", "https") or not host or not text.isprintable() or " " in text:
        raise ConfigError("it is no address of a collector", where=text, todo=_FORM)
    if parts.username is not None or parts.password is not None:
        raise ConfigError("credentials are no part of an endpoint", todo=_HEADERS)
    if parts.query or parts.fragment:
        raise ConfigError("nothing is sent behind a ? or a #", where=text, todo=_FORM)
    path = parts.path.rstrip("/")
    for known in (SPANS, METRICS):
        path = path.removesuffix(f"/{known}")
    return Endpoint(f"{parts.scheme}://{parts.netloc}{path}", _is_loopback(host), port)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
