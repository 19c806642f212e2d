"""Qpid's conformance tests of AMQP 0-8 and 0-9, at RabbitMQ directly and through the gateway.

They are in the source distribution of qpid-python, which `tools/test-tools.sh` gets, and run on Python 2.7.
`expected` has the table of what passes where, and why the others do not; `run_one.py` is what Python runs.
"""
