"""Clients of AMQP 0-8 to 0-9-1, through the gateway, on qpidd, which speaks nothing but AMQP 0-10.

`expected` has what they see there that they would not see on RabbitMQ, and why. `test_clients` plays the
steps of all clients, `test_features` looks at one thing after the other with pika.
"""
