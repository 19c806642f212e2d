"""Clients of AMQP 0-8, 0-9 and 0-9-1 that are old, on RabbitMQ directly and through the gateway.

`steps` says what each step must see, `clients` which library plays which steps, `programs` holds the programs
that play them, `places` where. `python -m tests.interop.old_clients` prints all of it as a table.
"""
