"""Who logs in: user names out of SASL exchanges, and responses to log in with.

The gateway passes SASL through and judges by the user name, so it must read that name exactly as the
broker does. What two readers could take for two different names is refused here with 502, which is also
what RabbitMQ 3.10 answers for each malformed response below:

================  =====================================================  =====================
mechanism         response                                               user
================  =====================================================  =====================
PLAIN             NUL user NUL password, nothing before the first NUL    between the NULs
AMQPLAIN          field table without its length: LOGIN, PASSWORD (S)    LOGIN
RABBIT-CR-DEMO    user                                                   the whole response
CRAM-MD5          (secure-ok) user, space, digest                        before the last space
SCRAM-SHA-*       n,,n=user,r=nonce                                      n, unescaped
EXTERNAL          ignored                                                of the certificate
================  =====================================================  =====================

Passwords and tokens are in no ``repr`` and in no error text.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NoReturn

from attrs import field

from amqpgate.errors import ProtocolViolation
from amqpgate.values import frozen
from amqpgate.wire.table_codec import get_table, put_table
from amqpgate.wire.tables import Field, Table

PLAIN: Final = "PLAIN"
AMQPLAIN: Final = "AMQPLAIN"
EXTERNAL: Final = "EXTERNAL"
ANONYMOUS: Final = "ANONYMOUS"
RABBIT_CR_DEMO: Final = "RABBIT-CR-DEMO"
CRAM_MD5: Final = "CRAM-MD5"
_SCRAM: Final = "SCRAM-SHA-"

#: Mechanisms whose one response can be said again to another broker. The others answer a challenge, which
#: is the broker's own.
REPEATABLE: Final = (PLAIN, AMQPLAIN, EXTERNAL)

_BOTH_PLAIN: Final = (PLAIN.encode(), AMQPLAIN.encode())

_LENGTH: Final = 4

_NAMES: Final = frozenset(
    {
        PLAIN,
        AMQPLAIN,
        EXTERNAL,
        ANONYMOUS,
        RABBIT_CR_DEMO,
        CRAM_MD5,
        "DIGEST-MD5",
        "GSSAPI",
        "OAUTHBEARER",
        "XOAUTH2",
    }
)
_SCRAM_HASHES: Final = frozenset({"1", "1-PLUS", "256", "256-PLUS", "512", "512-PLUS"})


@frozen
class Credentials:
    """A user name and the password that came with it."""

    user: str
    password: bytes = field(repr=False)


def offered_by(mechanisms: bytes) -> list[str]:
    """The names in a connection.start."""
    return mechanisms.decode(errors="replace").split()


def with_both_plain(offered: list[bytes]) -> list[bytes]:
    """PLAIN and AMQPLAIN say the same: where a broker has one of them, its client may use either."""
    missing = [name for name in _BOTH_PLAIN if name not in offered]
    return offered + missing if len(missing) == 1 else offered


def repeatable(offered: list[bytes]) -> list[bytes]:
    """Only mechanisms of one response, the two that every client has among them."""
    kept = [name for name in offered if name.decode(errors="replace") in REPEATABLE]
    return kept + [name for name in _BOTH_PLAIN if name not in kept]


def is_mechanism(name: str) -> bool:
    """Whether that is the name of a mechanism, and so can be shown: of those above, or like them."""
    return name in _NAMES or (name.startswith(_SCRAM) and name[len(_SCRAM) :] in _SCRAM_HASHES)


def plain_response(user: str, password: str | bytes) -> bytes:
    """The PLAIN response (RFC 4616). :class:`ValueError` for a NUL in either part."""
    secret = password.encode() if isinstance(password, str) else password
    if "\0" in user or b"\0" in secret:
        raise ValueError("PLAIN cannot carry a NUL in user name or password")
    return b"\0" + user.encode() + b"\0" + secret


def amqplain_response(user: str, password: str | bytes) -> bytes:
    """The AMQPLAIN response: a field table whose length is that of the response."""
    secret = password.encode() if isinstance(password, str) else password
    table = Table((("LOGIN", Field("S", user)), ("PASSWORD", Field("S", secret))))
    return put_table(table)[_LENGTH:]


def credentials(mechanism: str, response: bytes) -> Credentials | None:
    """User and password of a PLAIN or AMQPLAIN response; None for other mechanisms.

    Raises :class:`ProtocolViolation` 502 for a response that is not as the table above has it.
    """
    if mechanism == PLAIN:
        return _plain(response)
    if mechanism == AMQPLAIN:
        return _amqplain(response)
    return None


def response_for(offered: Collection[str], login: Credentials) -> tuple[str, bytes]:
    """Mechanism and response to log in with: AMQPLAIN where PLAIN cannot, or is not offered and AMQPLAIN is.

    Only AMQPLAIN carries a NUL, and is chosen for one even where the broker will refuse it.
    """
    has_nul = "\0" in login.user or b"\0" in login.password
    if has_nul or (AMQPLAIN in offered and PLAIN not in offered):
        return AMQPLAIN, amqplain_response(login.user, login.password)
    return PLAIN, plain_response(login.user, login.password)


def in_terms_of(offered: Collection[str], mechanism: str, response: bytes) -> tuple[str, bytes]:
    """The same login by a mechanism that is offered, and its response; itself where there is none.

    PLAIN and AMQPLAIN say the same, user and password. Raises as `credentials` does.
    """
    if mechanism in offered:
        return mechanism, response
    found = credentials(mechanism, response)
    if found is None or not (PLAIN in offered or AMQPLAIN in offered):
        return mechanism, response
    return response_for(offered, found)


def user_of(mechanism: str, response: bytes) -> str | None:
    """The user name in the response of connection.start-ok; None if it is not there.

    None is for EXTERNAL (the certificate says), for mechanisms that send it later (:class:`SaslWatcher`
    follows those), and for an empty PLAIN response, by which old clients ask for a challenge.
    """
    watcher = SaslWatcher(mechanism)
    watcher.response(response)
    return watcher.user


class SaslWatcher:
    """Follows one exchange: give it every response, and ``user`` is there when it is known.

    ``user`` stays None for mechanisms that are not in the table above; with ``by_certificate`` the
    client's certificate names it.
    """

    __slots__ = ("_rounds", "mechanism", "user")

    def __init__(self, mechanism: str) -> None:
        self.mechanism = mechanism
        self.user: str | None = None
        self._rounds = 0

    @property
    def by_certificate(self) -> bool:
        """Whether the user is whom the TLS certificate names, whatever the response says."""
        return self.mechanism == EXTERNAL

    def response(self, response: bytes) -> None:
        """The response of start-ok, then those of each secure-ok. Raises 502 if one is malformed."""
        first = self._rounds == 0
        self._rounds += 1
        if self.user is not None:
            return
        if self.mechanism in (PLAIN, AMQPLAIN):
            if response or not first:
                found = credentials(self.mechanism, response)
                self.user = found.user if found else None
        elif self.mechanism == RABBIT_CR_DEMO:
            self.user = _text(response)
        elif self.mechanism == CRAM_MD5 and response:
            user, space, _digest = response.rpartition(b" ")
            self.user = _text(user) if space else _malformed(CRAM_MD5)
        elif self.mechanism.startswith(_SCRAM) and response:
            self.user = _scram_user(response)


def _plain(response: bytes) -> Credentials:
    parts = response.split(b"\0")
    if len(parts) != 3 or parts[0]:
        _malformed(PLAIN)
    return Credentials(_text(parts[1]), parts[2])


def _amqplain(response: bytes) -> Credentials:
    try:
        table, _end = get_table(len(response).to_bytes(4, "big") + response, 0, len(response) + _LENGTH)
    except ProtocolViolation:
        _malformed(AMQPLAIN)
    names = [name for name, _field in table]
    login, password = table.field("LOGIN"), table.field("PASSWORD")
    # RabbitMQ takes the first of two LOGINs, Broker-J the last.
    if login is None or password is None or names.count("LOGIN") > 1 or names.count("PASSWORD") > 1:
        _malformed(AMQPLAIN)
    user, secret = login.value, password.value
    if login.tag != "S" or password.tag != "S" or not isinstance(user, str):
        _malformed(AMQPLAIN)
    if isinstance(secret, str):
        secret = secret.encode()
    return Credentials(user, secret) if isinstance(secret, bytes) else _malformed(AMQPLAIN)


def _scram_user(response: bytes) -> str:
    """RFC 5802: gs2-header (flag, authorization identity), then n=user and the nonce."""
    parts = response.split(b",")
    if len(parts) < 4 or parts[1] or not parts[2].startswith(b"n="):
        _malformed("SCRAM")
    name = _text(parts[2][2:])
    if "=" in name.replace("=2C", "").replace("=3D", ""):
        _malformed("SCRAM")
    return name.replace("=2C", ",").replace("=3D", "=")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        _malformed("user name")


def _malformed(what: str) -> NoReturn:
    # RabbitMQ's text quotes the whole response; that has the password in it.
    raise ProtocolViolation(502, f"{what} response invalid", class_id=10, method_id=11)
