"""AMQP 0-10 values to and from bytes, without any I/O.

What is where
    ``sequences``   serial numbers, and sets of them: what is accepted, released, completed

Neighbours
    Called by ``protocol`` and by all rooms above. Imports ``errors`` only.
"""
