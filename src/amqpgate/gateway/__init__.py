"""Sessions: listeners, handshakes, established sessions, the way to the broker. On trio.

In come accepted sockets and the settings; out go established sessions, put on the data path, and their end.
One nursery tree: nobody outlives its parent. Rooms, each of which imports only from those below it:

``server``     the whole: assembly, lifecycle, policies that are reloaded
``handshake``  from an accepted socket to two open connections
``pool``       connections to a broker that clients share
``observers``  audit, traces, taps, mirrors, statistics: who looks at sessions
``session``    an established session's control plane: the answers to the data path's upcalls
``limits``     token buckets, and who shares them
``upstream``   the way to the brokers: routes, endpoints, login
``transport``  sockets and TLS

Neighbours: ``app`` builds it, ``operator`` asks it; it uses ``datapath``, ``bridge``, ``policy``,
``telemetry``, ``protocol`` and ``wire``.
"""
