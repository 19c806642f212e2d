"""Tests of amqpgate: `unit` mirrors the source tree, `interop` meets real brokers and real clients."""
