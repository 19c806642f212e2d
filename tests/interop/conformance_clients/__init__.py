"""Ordinary programs of client libraries, which ``amqpgate conformance --serve --run`` judges."""
