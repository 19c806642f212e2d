"""What pooling promises: clients that share a link are as apart as if each had a connection of its own.

Every test runs on three ways to a real RabbitMQ: ``direct``, through the gateway with a connection of its own
per client (``own``), and with clients that share links (``pooled``). What must be the same is asserted of all
three, so that the broker itself says what is expected. ``python -m tests.interop.pooling`` measures what
pooling is good for.
"""
