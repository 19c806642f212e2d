"""Real clients on a real broker, each directly and through the gateway: both must see the same."""
