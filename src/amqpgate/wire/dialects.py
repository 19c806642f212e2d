"""Who writes what: the differences between peers as data, each with its source.

A field table value is a one-letter tag and a value (AMQP 0-9-1, section 4.2.5.5 "Field Tables"). The
letters mean different things to different peers, so the :class:`FieldKind` of each letter is looked up in
the :class:`Dialect` of the peer. Signedness that people trip over:

====  ==================  ======================  =========================
tag   RabbitMQ            0-9-1 standard          Qpid Broker-J / qpid-python
====  ==================  ======================  =========================
``b``  int8               int8                    int8
``B``  uint8              uint8                   uint8 / not read
``s``  int16              short string            int16
``u``  uint16             uint16                  uint16 / not read
``U``  refused            int16                   refused
``I``  int32              int32                   int32
``i``  uint32             uint32                  uint32 (Broker-J writes 8 bytes) / not read
``l``  int64              uint64                  int64
``L``  int64              int64                   refused
``D``  byte, uint32      byte, uint32           byte, int32
====  ==================  ======================  =========================
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType

from attrs import evolve, field

from amqpgate.values import frozen

#: Major, minor, revision: 0-9-1 is (0, 9, 1), and 0-8 is (0, 8, 0).
VersionNumbers = tuple[int, int, int]


def version_name(numbers: VersionNumbers) -> str:
    """ "0-9-1"; the last part is left out if it is 0."""
    return "-".join(str(part) for part in (numbers if numbers[2] else numbers[:2]))


class FieldKind(Enum):
    """How the bytes after a tag are laid out."""

    #: One byte; 0 is false, anything else is true.
    BOOL = auto()
    #: Signed 8 bits.
    INT8 = auto()
    #: Unsigned 8 bits.
    UINT8 = auto()
    #: Signed 16 bits.
    INT16 = auto()
    #: Unsigned 16 bits.
    UINT16 = auto()
    #: Signed 32 bits.
    INT32 = auto()
    #: Unsigned 32 bits.
    UINT32 = auto()
    #: Signed 64 bits.
    INT64 = auto()
    #: Unsigned 64 bits.
    UINT64 = auto()
    #: IEEE 754, 32 bits.
    FLOAT = auto()
    #: IEEE 754, 64 bits.
    DOUBLE = auto()
    #: A byte of decimal places and an unsigned 32-bit number.
    DECIMAL = auto()
    #: A byte of decimal places and a signed 32-bit number.
    SIGNED_DECIMAL = auto()
    #: One byte of text.
    CHAR = auto()
    #: A length byte and text.
    SHORTSTR = auto()
    #: A 32-bit length and bytes, text as a rule.
    LONGSTR = auto()
    #: A 32-bit length and bytes, not text.
    BYTES = auto()
    #: A 32-bit length and tagged values.
    ARRAY = auto()
    #: A 32-bit length and named, tagged values.
    TABLE = auto()
    #: Unsigned 64 bits, seconds since 1970.
    TIMESTAMP = auto()
    #: Nothing.
    VOID = auto()


def _types(**kinds: FieldKind) -> Mapping[str, FieldKind]:
    return MappingProxyType(kinds)


@frozen(eq=False)
class Dialect:
    """What one kind of peer writes and reads. Compared by identity: use the constants below."""

    #: For people and for metrics labels.
    name: str
    #: (major, minor, revision): which generated module has its methods.
    version: VersionNumbers
    #: The eight bytes with which a client of this dialect opens.
    header: bytes
    #: Tags that may arrive from this peer.
    decodes: Mapping[str, FieldKind] = field(repr=False)
    #: Tags that this peer reads; values of other tags are mapped to the nearest (``mapping``).
    encodes: Mapping[str, FieldKind] = field(repr=False)
    #: Whose methods it knows besides the standard's: names of overlays in ``spec/amqp``.
    extensions: frozenset[str] = frozenset()
    #: Refuses NaN and infinity in tables: Erlang has no such floats, RabbitMQ answers 541.
    finite_floats: bool = False
    #: Takes the lowest bit of the property flags ("another flag word follows") for unused.
    ignores_flag_continuation: bool = False


#: rabbit_binary_parser:parse_table/1 and rabbit_binary_generator (RabbitMQ 3.10.8), run against a broker.
_RABBITMQ_TYPES = _types(
    t=FieldKind.BOOL,
    b=FieldKind.INT8,
    B=FieldKind.UINT8,
    s=FieldKind.INT16,
    u=FieldKind.UINT16,
    I=FieldKind.INT32,
    i=FieldKind.UINT32,
    l=FieldKind.INT64,
    L=FieldKind.INT64,
    f=FieldKind.FLOAT,
    d=FieldKind.DOUBLE,
    D=FieldKind.DECIMAL,
    S=FieldKind.LONGSTR,
    A=FieldKind.ARRAY,
    T=FieldKind.TIMESTAMP,
    F=FieldKind.TABLE,
    V=FieldKind.VOID,
    x=FieldKind.BYTES,
)

#: AMQP 0-9-1 specification, section 4.2.1 "Formal Protocol Grammar", rule field-value.
_STANDARD_0_9_1_TYPES = _types(
    t=FieldKind.BOOL,
    b=FieldKind.INT8,
    B=FieldKind.UINT8,
    U=FieldKind.INT16,
    u=FieldKind.UINT16,
    I=FieldKind.INT32,
    i=FieldKind.UINT32,
    L=FieldKind.INT64,
    l=FieldKind.UINT64,
    f=FieldKind.FLOAT,
    d=FieldKind.DOUBLE,
    D=FieldKind.DECIMAL,
    s=FieldKind.SHORTSTR,
    S=FieldKind.LONGSTR,
    A=FieldKind.ARRAY,
    T=FieldKind.TIMESTAMP,
    F=FieldKind.TABLE,
    V=FieldKind.VOID,
)

#: AMQP 0-8 and 0-9 specifications, section "Field Tables": five types, no boolean.
_STANDARD_0_8_TYPES = _types(
    S=FieldKind.LONGSTR,
    I=FieldKind.INT32,
    D=FieldKind.SIGNED_DECIMAL,
    T=FieldKind.TIMESTAMP,
    F=FieldKind.TABLE,
)

#: Qpid Broker-J, AMQType.java (read methods). ``c`` and ``C`` are long strings of another alphabet.
_BROKER_J_READS = _types(
    S=FieldKind.LONGSTR,
    i=FieldKind.UINT32,
    D=FieldKind.SIGNED_DECIMAL,
    T=FieldKind.TIMESTAMP,
    F=FieldKind.TABLE,
    A=FieldKind.ARRAY,
    V=FieldKind.VOID,
    x=FieldKind.BYTES,
    c=FieldKind.LONGSTR,
    C=FieldKind.LONGSTR,
    t=FieldKind.BOOL,
    k=FieldKind.CHAR,
    b=FieldKind.INT8,
    B=FieldKind.UINT8,
    s=FieldKind.INT16,
    u=FieldKind.UINT16,
    I=FieldKind.INT32,
    l=FieldKind.INT64,
    f=FieldKind.FLOAT,
    d=FieldKind.DOUBLE,
)

#: The same less ``i``, which it reads with four bytes but passes on with eight.
_BROKER_J_TYPES = MappingProxyType({tag: kind for tag, kind in _BROKER_J_READS.items() if tag != "i"})

#: qpid-python, qpid/codec.py: Codec.__init__ registers what it writes.
_QPID_PYTHON_WRITES = _types(
    S=FieldKind.LONGSTR,
    V=FieldKind.VOID,
    I=FieldKind.INT32,
    l=FieldKind.INT64,
    d=FieldKind.DOUBLE,
    f=FieldKind.FLOAT,
    t=FieldKind.BOOL,
)

#: qpid-python, qpid/codec.py: what it reads besides.
_QPID_PYTHON_READS = MappingProxyType({**_QPID_PYTHON_WRITES, "b": FieldKind.INT8, "s": FieldKind.INT16})

#: python-amqplib's serialization.py (read_table) and npm's amqp 0.0.2 (parseTable) know no more: no boolean.
#: They read a decimal's number as signed, as it was written; here it is what it is on the way from and to the
#: rest, so that its bytes stay.
_LEGACY_0_8_TYPES = _types(
    S=FieldKind.LONGSTR, I=FieldKind.INT32, D=FieldKind.DECIMAL, T=FieldKind.TIMESTAMP, F=FieldKind.TABLE
)

#: txAMQP's codec.py (decode_table) reads booleans.
_LEGACY_0_9_TYPES = MappingProxyType({**_LEGACY_0_8_TYPES, "t": FieldKind.BOOL})

#: Protocol headers: the first eight bytes of a client.
HEADER_0_8 = b"AMQP\x01\x01\x08\x00"
HEADER_0_9 = b"AMQP\x01\x01\x00\x09"
HEADER_0_9_1 = b"AMQP\x00\x00\x09\x01"

#: RabbitMQ and the clients made for it. The default everywhere. Source: RabbitMQ 3.10.8.
RABBITMQ_0_9_1 = Dialect(
    name="rabbitmq-0-9-1",
    version=(0, 9, 1),
    header=HEADER_0_9_1,
    decodes=_RABBITMQ_TYPES,
    encodes=_RABBITMQ_TYPES,
    extensions=frozenset({"rabbitmq"}),
    finite_floats=True,
    ignores_flag_continuation=True,
)

#: The letter of the 0-9-1 specification. Source: its section 4.2.1.
STANDARD_0_9_1 = Dialect(
    name="standard-0-9-1",
    version=(0, 9, 1),
    header=HEADER_0_9_1,
    decodes=_STANDARD_0_9_1_TYPES,
    encodes=_STANDARD_0_9_1_TYPES,
)

#: RabbitMQ spoken to with the 0-8 header. Source: rabbit_framing_amqp_0_8 of RabbitMQ 3.10.8.
RABBITMQ_0_8 = Dialect(
    name="rabbitmq-0-8",
    version=(0, 8, 0),
    header=HEADER_0_8,
    decodes=_RABBITMQ_TYPES,
    encodes=_RABBITMQ_TYPES,
    extensions=frozenset({"rabbitmq"}),
    finite_floats=True,
    ignores_flag_continuation=True,
)

#: The letter of the 0-8 specification.
STANDARD_0_8 = Dialect(
    name="standard-0-8",
    version=(0, 8, 0),
    header=HEADER_0_8,
    decodes=_STANDARD_0_8_TYPES,
    encodes=_STANDARD_0_8_TYPES,
)

#: The letter of the 0-9 specification.
STANDARD_0_9 = Dialect(
    name="standard-0-9",
    version=(0, 9, 0),
    header=HEADER_0_9,
    decodes=_STANDARD_0_8_TYPES,
    encodes=_STANDARD_0_8_TYPES,
)

#: Qpid Broker-J under the 0-8 header. Source: its amqp-0-8-protocol plug-in.
QPID_0_8 = Dialect(
    name="qpid-0-8",
    version=(0, 8, 0),
    header=HEADER_0_8,
    decodes=_BROKER_J_READS,
    encodes=_BROKER_J_TYPES,
    extensions=frozenset({"qpid"}),
    ignores_flag_continuation=True,
)

#: Qpid Broker-J under the 0-9 header. Source: its amqp-0-8-protocol plug-in, which serves 0-9 too.
QPID_0_9 = Dialect(
    name="qpid-0-9",
    version=(0, 9, 0),
    header=HEADER_0_9,
    decodes=_BROKER_J_READS,
    encodes=_BROKER_J_TYPES,
    extensions=frozenset({"qpid"}),
    ignores_flag_continuation=True,
)

#: Qpid Broker-J under the 0-9-1 header. Source: the same plug-in.
QPID_0_9_1 = Dialect(
    name="qpid-0-9-1",
    version=(0, 9, 1),
    header=HEADER_0_9_1,
    decodes=_BROKER_J_READS,
    encodes=_BROKER_J_TYPES,
    extensions=frozenset({"qpid", "rabbitmq"}),
    ignores_flag_continuation=True,
)

#: A qpid-python client of 0-9. Source: qpid/codec.py.
QPID_PYTHON_0_9 = Dialect(
    name="qpid-python-0-9",
    version=(0, 9, 0),
    header=HEADER_0_9,
    decodes=_QPID_PYTHON_WRITES,
    encodes=_QPID_PYTHON_READS,
    extensions=frozenset({"qpid"}),
    ignores_flag_continuation=True,
)

#: The same with its specification of 0-8.
QPID_PYTHON_0_8 = evolve(QPID_PYTHON_0_9, name="qpid-python-0-8", version=(0, 8, 0), header=HEADER_0_8)

#: The same with that of 0-9-1, behind the header of 0-9 all the same.
QPID_PYTHON_0_9_1 = evolve(
    QPID_PYTHON_0_9,
    name="qpid-python-0-9-1",
    version=(0, 9, 1),
    extensions=frozenset({"qpid", "rabbitmq"}),
)

#: Old clients (python-amqplib, npm's amqp): anything may come, only five types may go. Knows both worlds'
#: methods, because such clients are pointed at either kind of broker.
LEGACY_CLIENT = Dialect(
    name="legacy-0-8",
    version=(0, 8, 0),
    header=HEADER_0_8,
    decodes=_RABBITMQ_TYPES,
    encodes=_LEGACY_0_8_TYPES,
    extensions=frozenset({"rabbitmq", "qpid"}),
    ignores_flag_continuation=True,
)

#: The same under the 0-9 header (txAMQP), with booleans.
LEGACY_CLIENT_0_9 = Dialect(
    name="legacy-0-9",
    version=(0, 9, 0),
    header=HEADER_0_9,
    decodes=_RABBITMQ_TYPES,
    encodes=_LEGACY_0_9_TYPES,
    extensions=frozenset({"rabbitmq", "qpid"}),
    ignores_flag_continuation=True,
)

#: A 0-8 broker of which no more is known: what such clients read, and the letter of the specification.
LEGACY_BROKER = evolve(LEGACY_CLIENT, name="legacy-broker-0-8", extensions=frozenset())

#: The same under the 0-9 header.
LEGACY_BROKER_0_9 = evolve(LEGACY_CLIENT_0_9, name="legacy-broker-0-9", extensions=frozenset())

#: Every dialect by name.
DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        dialect.name: dialect
        for dialect in (
            RABBITMQ_0_9_1,
            STANDARD_0_9_1,
            QPID_0_9_1,
            RABBITMQ_0_8,
            STANDARD_0_8,
            QPID_0_8,
            LEGACY_CLIENT,
            STANDARD_0_9,
            QPID_0_9,
            QPID_PYTHON_0_9,
            QPID_PYTHON_0_8,
            QPID_PYTHON_0_9_1,
            LEGACY_CLIENT_0_9,
            LEGACY_BROKER,
            LEGACY_BROKER_0_9,
        )
    }
)
