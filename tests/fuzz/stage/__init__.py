"""A whole gateway on loopback, between a client and a broker that are the target's own.

``running``  the gateway and the clock; what its log may not say
``broker``   a broker that checks all that comes
``client``   what a client says, mostly in good order
"""
