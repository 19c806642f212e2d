"""Which rules of AMQP a broker or a proxy obeys: any broker's, of any maker.

Each case is one rule, a short conversation, and what may come of it. Nothing here knows of gateways: it needs
an address, a login and a virtual host.

``case``      a rule and its conversation; verdicts
``endings``   conversations that do not come to an outcome
``versions``  the versions of AMQP that cases are played in
``dialling``  the way to whoever is tested
``setting``   what every conversation has
``peer``      one connection to whoever is tested, as bytes and as methods
``talk``      what conversations are made of: a channel, a queue of one's own, a message
``v0_10``     the same two for AMQP 0-10, whose frames are others
``cases``     the rules, by the part of the specification that has them
``run``       plays cases side by side, and cleans up
``report``    what came of it: text, JSON, JUnit, HTML
``client``    the same of clients: a scripted broker
``proxy``     the same of proxies: a client before them and a broker behind

Neighbours: calls ``protocol`` and ``wire``. ``cli.conformance`` calls it.
"""
