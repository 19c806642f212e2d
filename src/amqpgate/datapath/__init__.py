"""The engine room: moves complete frames between the two sockets of a session.

In come bytes from a socket; out go spans of the same bytes to the peer's socket, and, for whatever
the tables here do not know, one *upcall* at a time to the control plane (``gateway``), which
decides and may install a flow so that the next frame like it is a hit.

``tables``     what each method means to the scanner, the results of a scan, the state of a lane
``reference``  the scanner in plain Python: the executable specification of ``scan``
``framing``    the check that each frame undergoes first
``flows``      token buckets, flows and the flow table; ``meters``: what passed since somebody looked;
               ``channels``: the open channels
``endpoint``   one socket, plain or TLS, with its unsent bytes and its partial frame
``relay``      the two endpoints of one session
``link``       one connection to a broker that several sessions share; ``shared``: their mappings on it
``whole``      how far a client's bytes may go to a link: only whole messages, well formed
``passage``    the ways from endpoint to endpoint; ``staging``: what of it is in whole messages
``pressure``   back-pressure: who is read, and who is not
``pump``       every established socket in one epoll set, and the heartbeats
``driver``     who waits on the pump: a trio task

Neighbours: ``gateway`` puts sessions in and answers upcalls. No task, timer or object per frame.
"""
