"""AMQP 0-10 to and from canonical methods and messages. Not used by the gateway yet.

What is where
    ``properties``  the header of a transfer and the properties of a message
    ``tables``      maps of 0-10 and field tables; ``reply_to``: the two parts of a reply-to and one text
    ``arguments``   what queues, exchanges, bindings and subscriptions are made with
    ``codes``       an exception and channel.close
"""
