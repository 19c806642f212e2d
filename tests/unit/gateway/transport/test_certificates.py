"""When certificates expire."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from amqpgate.gateway.transport.certificates import expiry
from tests.unit.gateway.papers import Papers
from tests.unit.gateway.server.test_scrape import MakeStage, scraped


def test_when_certificates_expire(make_stage: MakeStage, papers: Papers) -> None:
    when = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    later = datetime(2050, 1, 1, tzinfo=UTC)
    papers.write("gate", papers.ca.issue_cert("localhost", not_after=when))
    papers.write("other", papers.ca.issue_cert("other.example", not_after=later))
    names = "certificates: [{cert: other.pem, key: other.key, serverNames: [other.example]}]"
    stage = make_stage(listener=f"tls: {{cert: gate.pem, key: gate.key, {names}}}")
    name = "amqpgate_tls_certificate_expiry_timestamp_seconds"

    def told() -> dict[str, float]:
        return {Path(dict(labels)["file"]).name: value for labels, value in scraped(stage)[name].items()}

    assert told() == {"gate.pem": when.timestamp(), "other.pem": later.timestamp()}
    # A new one is told without anybody connecting; one that cannot be used is not.
    papers.write("gate", papers.ca.issue_cert("localhost", not_after=later))
    assert told() == {"gate.pem": later.timestamp(), "other.pem": later.timestamp()}
    papers.write("strange", papers.ca.issue_cert("localhost", not_after=when))
    (papers.folder / "gate.pem").write_bytes((papers.folder / "strange.pem").read_bytes())
    assert told()["gate.pem"] == later.timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        ssl.DER_cert_to_PEM_cert(b"\x30\x03\x30\x01\x02"),
        ssl.DER_cert_to_PEM_cert(b"\x30\x82\xff"),
    ],
)
def test_what_is_no_certificate(text: str) -> None:
    with pytest.raises(ValueError, match="certificate"):
        expiry(text)


def test_a_certificate_of_the_last_century() -> None:
    when = datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC)
    issued = trustme.CA().issue_cert("a", not_before=datetime(1990, 1, 1, tzinfo=UTC), not_after=when)
    assert expiry(issued.cert_chain_pems[0].bytes().decode()) == when.timestamp()
