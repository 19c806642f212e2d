"""AMQP 0-10 to and from canonical AMQP 0-9-1."""
