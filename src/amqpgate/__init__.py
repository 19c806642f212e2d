"""amqpgate: a transparent AMQP gateway, for policy, audit and throttling between clients and brokers.

The rooms, and who may call whom, are in ``docs/architecture.md`` and in ``spec/decisions``.
"""

from importlib.metadata import version

__version__ = version("amqpgate")
