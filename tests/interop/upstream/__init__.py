"""The acceptance tests that client libraries ship, run directly and through the gateway and compared."""
