"""The way to the brokers.

``cluster``      the health of endpoints, which ``health_check`` checks
``router``       chooses a cluster for a connection; ``route_pause`` holds back those of a paused route
``dialer``       reaches an endpoint
``broker_side``  the broker's half of a handshake, about a ``client``
``own_login``    that of connections of the gateway's own
``redaction``    keeps logins out of what clients and logs are told
"""
