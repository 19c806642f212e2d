"""What happens to each method: no method is left out."""

from __future__ import annotations

from amqpgate.wire.generated import v0_9_1 as amqp


def test_the_tables_leave_no_method_out() -> None:
    """Each method of the protocol is the handshake's, the scanner's, or in a table of the session."""
    from amqpgate.datapath.tables import DOWN_ACTIONS, UP_ACTIONS
    from amqpgate.gateway.session.dispatch import DOWN, UP
    from amqpgate.protocol.methods import SENT_BY, Role

    handshake = {"start", "start-ok", "secure", "secure-ok", "tune", "tune-ok", "open", "open-ok"}
    up = {amqp.METHODS[index].NAME for index in {**UP, **UP_ACTIONS}}
    down = {amqp.METHODS[index].NAME for index in {**DOWN, **DOWN_ACTIONS}}
    known = {method.NAME for method in amqp.METHODS.values() if method.EXTENSION in ("", "rabbitmq")}
    known -= {f"connection.{name}" for name in handshake}
    # The standard lets a client answer the broker's basic.cancel.
    assert up == (known & SENT_BY[Role.CLIENT]) | {"basic.cancel-ok"}
    assert down == known & SENT_BY[Role.SERVER]
