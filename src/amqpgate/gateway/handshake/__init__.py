"""From an accepted socket to an established session.

In come sockets; out goes a `session.established.Established`, two open connections, or a refusal. In order:

``listeners``     the listening sockets
``accept``        gives each connection a task, which reads PROXY header, TLS and protocol header
``passthrough``   keeps the conversations with the client and the broker in step
``late_binding``  instead of that: hears the client out before it chooses the broker
``client_side``   the client's half of both

``admission`` says whether a virtual host may be opened, and applies connection and login limits;
``principals`` says who a client is that the broker knows by another login; ``pending`` bounds the handshakes
that are under way; ``offers`` is what a client is offered before its broker is known; ``failures`` and
``timing`` are for the log and for spans; ``context`` is what all handshakes share.
"""
