"""Whatever clients do, the broker stays up, and nothing is left of them when they are gone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE, Table

from .client import Client, new_state

_REPLY_TO = "amq.rabbitmq.reply-to"
_flags = st.booleans()
_names = st.sampled_from(["", "q", "r", "s"])
_queues = st.sampled_from(["", "q", "q", "r", "r", "s", "nope", _REPLY_TO])
_exchanges = st.sampled_from(["", "x", "x", "y", "amq.direct", "amq.topic", "amq.headers"])
_keys = st.sampled_from(["", "q", "r", "a.b", "a.*", "#"])
_tags = st.integers(0, 6)
_tables = st.sampled_from(
    [EMPTY_TABLE, Table.of({"x-match": "any", "a": 1}), Table.of({"x-priority": 3}), Table.of({"a": None})]
)
_alternates = st.sampled_from([EMPTY_TABLE, Table.of({"alternate-exchange": "x"})])
_types = st.sampled_from(["direct", "fanout", "topic", "headers"])

_methods: st.SearchStrategy[Method] = st.one_of(
    st.builds(amqp.QueueDeclare, st.just(0), _names, _flags, _flags, _flags, _flags, _flags),
    st.builds(amqp.QueueBind, st.just(0), _queues, _exchanges, _keys, _flags, _tables),
    st.builds(amqp.QueueUnbind, st.just(0), _queues, _exchanges, _keys, _tables),
    st.builds(amqp.QueuePurge, st.just(0), _queues, _flags),
    st.builds(amqp.QueueDelete, st.just(0), _queues, _flags, _flags, _flags),
    st.builds(
        amqp.ExchangeDeclare,
        st.just(0),
        _exchanges,
        _types,
        _flags,
        _flags,
        _flags,
        _flags,
        _flags,
        _alternates,
    ),
    st.builds(amqp.ExchangeBind, st.just(0), _exchanges, _exchanges, _keys, _flags, _tables),
    st.builds(amqp.ExchangeUnbind, st.just(0), _exchanges, _exchanges, _keys, _flags, _tables),
    st.builds(amqp.ExchangeDelete, st.just(0), _exchanges, _flags, _flags),
    st.builds(amqp.BasicQos, st.just(0), st.integers(0, 3), _flags),
    st.builds(amqp.BasicConsume, st.just(0), _queues, _names, _flags, _flags, _flags, _flags, _tables),
    st.builds(amqp.BasicCancel, _names, _flags),
    st.builds(amqp.BasicGet, st.just(0), _queues, _flags),
    st.builds(amqp.BasicAck, _tags, _flags),
    st.builds(amqp.BasicNack, _tags, _flags, _flags),
    st.builds(amqp.BasicReject, _tags, _flags),
    st.builds(amqp.BasicRecover, st.just(True)),
    st.builds(amqp.BasicRecoverAsync, st.just(True)),
    st.sampled_from([amqp.ConfirmSelect(), amqp.TxSelect(), amqp.TxCommit(), amqp.TxRollback()]),
    st.just(amqp.ChannelClose(200, "done")),
)
_properties = st.builds(
    amqp.BasicProperties,
    headers=st.sampled_from([None, Table.of({"a": 1}), Table.of({"CC": ["r", "s"], "BCC": ["q"]})]),
    delivery_mode=st.sampled_from([None, 2, 2, 0]),
    reply_to=st.sampled_from([None, None, _REPLY_TO]),
)
_publishes = st.builds(amqp.BasicPublish, st.just(0), _exchanges, _keys, _flags)
_messages = st.tuples(_publishes, _properties, st.binary(max_size=300))
_steps = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(1, 2),
        # Not `one_of`, which would make a publish as rare as any one method.
        st.booleans().flatmap(lambda publishes: _messages if publishes else _methods),
    ),
    min_size=10,
    max_size=60,
)


@given(_steps)
def test_anything(steps: list[tuple[int, int, Method | tuple[Method, amqp.BasicProperties, bytes]]]) -> None:
    state = new_state(memory_limit=20_000)
    clients = [Client(state, channels=2), Client(state, channels=2)]
    clients[0].tell(amqp.ExchangeDeclare(exchange="x", type="fanout"))
    for name in ("q", "r"):
        clients[0].tell(amqp.QueueDeclare(queue=name))
        clients[0].tell(amqp.QueueBind(0, name, "x"))
    for which, channel, step in steps:
        client = clients[which]
        if not client.connection.is_open:
            client.session.close()
            client = clients[which] = Client(state, channels=2)
        client.read()
        if channel in client.closes_due:
            client.tell(amqp.ChannelCloseOk(), channel)
        if channel not in client.connection.open_channels:
            client.tell(amqp.ChannelOpen(), channel)
        if isinstance(step, tuple):
            client.feed(client.connection.send_content(channel, *step))
        else:
            client.tell(step, channel)
        assert 0 <= state.memory.used <= state.memory.limit
    for client in clients:
        client.session.close()
    vhost = state.vhosts["/"]
    for name in list(vhost.queues):
        vhost.drop_queue(vhost.queues[name])
    for name in ("x", "y"):
        vhost.delete_exchange(name, if_unused=False)
    assert state.memory.used == 0
    assert not state.replies._takers
    assert not state.agenda._queues
    left = [binding.destination for exchange in vhost.exchanges.values() for binding in exchange.bindings]
    assert all(to.kind == "exchange" and to.name in vhost.exchanges for to in left)
