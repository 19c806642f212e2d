"""What cases of AMQP 0-10 are talked with: ``peer`` is a connection, ``session`` one session on it, ``talk``
what conversations are made of."""
