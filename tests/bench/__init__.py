"""The benchmark: amqpgate, HAProxy and other proxies in one interleaved run. See README.md here."""
