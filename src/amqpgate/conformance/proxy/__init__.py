"""What a proxy does to what passes through it: the tool is the client before it and the broker behind it.

``inner``    the probing broker: it hears, and answers what a conversation does not
``between``  what conversations are made of: a client through the proxy, and what the broker has heard
``cases``    the rules
``run``      plays them one after the other

Neighbours: calls ``conformance.case``, ``peer``, ``talk`` and ``versions``, ``protocol`` and ``wire``.
"""
