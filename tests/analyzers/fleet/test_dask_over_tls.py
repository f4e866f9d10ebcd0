"""A Dask scheduler that is spoken to by TLS, with certificates of Dask's own configuration."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.check.registry import select
from stepscope.analyzers.fleet.archive.opened import digest_of
from stepscope.analyzers.fleet.dask_pool import DaskPool, check_address
from stepscope.ingest.errors import ConfigError
from tests.analyzers.fleet.at_hand import Here, imported, rows
from tests.ingest.derive.collectives.rank_jobs import Look, job, write_job
from tests.tiers import slow

dask, distributed = map(pytest.importorskip, ("dask", "distributed"))
x509, hashes, serialization, ec = (
    pytest.importorskip(f"cryptography.{name}", reason="certificates are made by cryptography")
    for name in (
        "x509",
        "hazmat.primitives.hashes",
        "hazmat.primitives.serialization",
        "hazmat.primitives.asymmetric.ec",
    )
)
RULES = select(["COL", "TRC"])

pytestmark = pytest.mark.filterwarnings("ignore")  # what Dask warns of as a cluster ends is its own


def certificate(folder: Path, name: str) -> dict[str, Any]:
    """Make a certificate that vouches for itself, and give the configuration of who has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    own, secret = folder / f"{name}.pem", folder / f"{name}.key"
    own.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return configured(str(own), str(secret))


def configured(own: str | None, secret: str | None) -> dict[str, Any]:
    """Dask's configuration of who has that certificate, and trusts no other."""
    told = {
        f"distributed.comm.tls.{role}.{what}": file
        for role in ("scheduler", "worker", "client")
        for what, file in (("cert", own), ("key", secret))
    }
    encrypts = {"distributed.comm.require-encryption": True}
    return told | encrypts | {"distributed.comm.tls.ca-file": own}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Any]:
    """One worker in a process of its own, on loopback, that speaks TLS alone."""
    with dask.config.set(certificate(tmp_path, "cluster")):
        made = distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, host="tls://127.0.0.1", dashboard_address=None,
            silence_logs=logging.CRITICAL, security=distributed.Security(),
        )  # fmt: skip
        yield made
        made.close(timeout=180)


@slow
def test_over_tls_a_cluster_makes_the_same_archive(cluster: Any, tmp_path: Path) -> None:
    ranks = write_job(tmp_path / "job", job(2, num_steps=3), Look(), Look(swapped=4))
    imported(tmp_path / "here", ranks, pool=Here(), rules=RULES)

    address = cluster.scheduler_address
    check_address(address, insecure=False)
    pool = DaskPool(address, timeout_s=180)
    imported(tmp_path / "there", ranks, pool=pool, rules=RULES)
    pool.close()

    assert address.startswith("tls://127.0.0.1:")
    assert digest_of(tmp_path / "there") == digest_of(tmp_path / "here")
    assert rows(tmp_path / "there", "findings")


@slow
def test_whoever_has_another_certificate_is_told_that_no_scheduler_answers(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepscope.analyzers.fleet.dask_pool.CONNECT_S", 1)

    with (
        dask.config.set(certificate(tmp_path, "stranger")),
        pytest.raises(ConfigError, match="no scheduler answers"),
    ):
        DaskPool(cluster.scheduler_address, timeout_s=180)


def test_without_a_certificate_that_is_said(cluster: Any) -> None:
    with (
        dask.config.set(configured(None, None)),
        pytest.raises(ConfigError, match=r"no scheduler answers: .*TLS"),
    ):
        DaskPool(cluster.scheduler_address, timeout_s=180)
