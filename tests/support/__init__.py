"""What the tests stand on: child processes, a private RabbitMQ node, a gateway, and ways to reach them."""
