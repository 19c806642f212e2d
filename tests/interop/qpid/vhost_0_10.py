# ruff: noqa: UP010
"""qpid-python's two APIs for AMQP 0-10 leave the virtual host to the broker.

For Python 2.7, with qpid-python in its path.
"""

from __future__ import print_function

import qpid.delegates
import qpid.messaging.driver


def choose_vhost(vhost):
    """All connections are to this one."""

    def connection_tune(client, channel, tune):
        channel.connection_tune_ok(heartbeat=client.heartbeat)
        channel.connection_open(vhost)
        client.connection.user_id = client.sasl.auth_username()
        client.connection.security_layer_tx = client.sasl

    qpid.delegates.Client.connection_tune = connection_tune
    made = qpid.messaging.driver.ConnectionOpen
    qpid.messaging.driver.ConnectionOpen = lambda: made(vhost)
