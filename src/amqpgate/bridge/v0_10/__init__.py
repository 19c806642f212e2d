"""AMQP 0-10 to and from canonical methods and messages: clients of listeners speak it.

What is where
    ``client``      the translator of a client: its connection, and which session gets what
        ``login``           start to close, and what is tuned
        ``client_session``  one session: its order, its channels, its end
        ``channels``        the channels of 0-9-1 that a session has; ``frames``: the gateway's side in frames
        ``link``            what the sessions of one client share
        ``commands``        which command is done by what; ``steps``: what a command is made of
        ``declaring``       declares, binds and deletes; ``queries``; ``topology``: what is known
        ``orphans``         messages of a queue that is deleted
        ``publishing``      transfers; ``transactions``; ``no_local``: who published what
        ``subscriptions``   what a session's client gets; ``subscription``: one of them; ``credit``
        ``subscribers``     subscriptions of all sessions; ``parting``: what goes with the last one
        ``consumers``       what the broker knows of them
        ``deliveries``      messages that are not settled
    ``broker``      the translator of a broker: its connection, and which channel gets what
        ``broker_login``       start to open
        ``broker_channel``     one channel, a session: its order and its end; ``broker_modes``
        ``broker_task``        a method that is answered; ``broker_link``: what the parts have in common
        ``broker_publishing``  messages to transfers, completion to confirms
        ``broker_consuming``   deliveries, acknowledgements; ``broker_consumer``: a subscription
        ``broker_incoming``    whole messages of the broker's
        ``broker_declaring``   queues, exchanges, bindings
    ``properties``  the header of a transfer and the properties of a message
    ``tables``      maps of 0-10 and field tables; ``reply_to``: the two parts of a reply-to and one text
    ``arguments``   what queues, exchanges, bindings and subscriptions are made with
    ``codes``       an exception and channel.close
"""
