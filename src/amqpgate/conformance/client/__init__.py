"""Which rules of AMQP a client obeys: a scripted broker that its program connects to.

``findings``         what a connection has shown of each rule
``rules``            rules that every connection is judged by
``watch``            tries them, frame by frame; ``watched_channel`` has what is known of a channel
``store``            exchanges, queues and messages
``outbox``           frames on their way to the client
``line``             the broker's end of a connection, to speak on
``scenario``         what is otherwise than usual on a connection, by hooks
``served_channel``   a channel; ``methods`` does what is asked on it
``served``           a connection
``scenarios``        what is played
``serve``            listens, gives each connection its scenario, and collects what came of it

Neighbours: calls ``conformance.case``, ``peer`` and ``versions``, ``protocol`` and ``wire``.
"""
