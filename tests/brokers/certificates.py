"""A certificate authority made for one run of the tests, and a broker's certificate by it."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Certificates:
    """PEM files: what a client trusts, and what a broker on 127.0.0.1 or localhost shows."""

    authority: Path
    certificate: Path
    key: Path
    keystore: Path
    """Key and certificate in one file, as Kafka reads them."""


def make_certificates(directory: Path) -> Certificates:
    """Make an authority and let it sign a certificate for a broker on loopback."""
    directory.mkdir(parents=True, exist_ok=True)
    files = Certificates(
        authority=directory / "authority.pem",
        certificate=directory / "broker.pem",
        key=directory / "broker.key",
        keystore=directory / "broker.keystore.pem",
    )
    authority_key = ec.generate_private_key(ec.SECP256R1())
    broker_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("tardis-fast tests")
    authority = (
        _certificate(authority_name, authority_name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    loopback = x509.SubjectAlternativeName(
        [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )
    broker = (
        _certificate(_name("localhost"), authority_name, broker_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(loopback, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    key = broker_key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    certificate = broker.public_bytes(serialization.Encoding.PEM)
    files.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    files.certificate.write_bytes(certificate)
    files.key.write_bytes(key)
    files.keystore.write_bytes(key + certificate)
    return files


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=7))
    )
