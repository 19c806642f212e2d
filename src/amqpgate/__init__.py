"""amqpgate: a transparent AMQP gateway, for policy, audit and throttling between clients and brokers.

The rooms, and who may call whom, are in ``docs/architecture.md`` and in ``spec/decisions``.
"""

#: What ``pyproject.toml`` has it from: to ask the installed package takes 4 MiB of modules.
__version__ = "0.2.0"
