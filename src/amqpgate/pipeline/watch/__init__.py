"""Streams that act: what happens in new records, told as alerts, each at least once and with an id.

``alert``    what is told, as a row and as a CloudEvent
``denied``   what was refused, by minute
``unusual``  who left their own history, by hour
``upgrade``  who would fail on a newer RabbitMQ, once
``course``   the order of things: which files are a batch, what is remembered, and when

A batch is settled on disk before it is read, and remembered after it was delivered: so a process that dies
in between makes the same alerts, with the same ids, of the same files again.
"""
