"""The data path: moves complete frames between the two sockets of a session.

What comes in
    Bytes from a socket.

What goes out
    Spans of the same bytes to the peer's socket. For whatever the tables here do not know, one *upcall* at a
    time to the control plane (``gateway``), which decides and may install a flow, so that the next frame like
    it is a hit.

What is where
    ``engine``     the contract of both engines, the compiled one and the plain one
    ``build``      chooses the engine, and makes what enters it
    ``relay``      one session; ``link``: one connection to a broker that several sessions share
    ``tables``     what each method means to the scanner, the results of a scan, the state of a lane
    ``scanner``    chooses the scanner
    ``driver``     who waits on the pump: a trio task, or trio as its ``guest``
    ``accepting``  connections of a listening socket
    ``reserve``    memory for what is small, when there is no other

    The plain scanner, the executable specification of the compiled one (``_scan.pyx``):
    ``reference``  the scan; ``framing``: the check that each frame undergoes first
    ``flows``      token buckets, flows and the flow table; ``meters``: what passed since somebody looked
    ``channels``   the open channels; ``confirms`` and ``unacked``: what is due on them
    ``whole``      how far a client's bytes may go to a link: only whole messages; ``properties``

    The plain pump, likewise of ``_pump.pyx``. Each part uses those above it:
    ``endpoint``   one socket, plain or TLS, and the ends of a link that is shared; ``staging``
    ``schedule``   the clock, turns and queues; ``wheel`` and ``timer``: deadlines
    ``pressure``   back-pressure: who is read, and who is not
    ``departures`` who leaves the pump, and why
    ``passage``    the ways from endpoint to endpoint; ``turns``: one endpoint's turn
    ``pump``       every established socket in one epoll set, and the heartbeats

Neighbours
    ``gateway`` puts sessions in and answers upcalls. No task, timer or object per frame.
"""
