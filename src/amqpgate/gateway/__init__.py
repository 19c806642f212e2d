"""The corridors: listeners, the life of each session, the way to the broker. On trio.

In come accepted sockets and the settings; out go established sessions, put on the data path, and
their end. One nursery tree: nobody outlives its parent.

``listener``   accepts, within the limits
``server``     the nursery tree; ``arrivals`` are connections until they are sessions, ``sessions`` those;
               ``lifecycle`` pauses and drains: ``doors`` are what listens, ``draining`` parts with sessions,
               ``dismissing`` with those that operators close; ``leaving`` is what both wait for
``setup``      one session's way from the first byte to open-ok, on both hops; ``deferred`` where
               the broker comes last; ``client_handshake`` is the client's half of both,
               ``broker_handshake`` the broker's where it is said all at once
``session``    the answers to the data path's upcalls: channels, closes (``closing``); ``asking`` is what a
               client asks for, ``sending`` what it is sent, ``contents`` what is shown of either; ``judging``
               asks the policies, ``holding`` has the publishes that are judged one by one
``bridging``   peers of other versions: what they say and hear (``bridge``); ``stops`` has channels whose
               client wants no deliveries
``rewriting``  one session's names and messages as a transform policy changes them (``transforming``)
``mirroring``  which publishes of a session are copied for a mirror; ``mirrors`` has all mirrors, each a
               queue (``mirrorqueue``) and a task (``mirror``, ``mirrordial``, ``mirrorpipe``, ``mirrorline``)
``pool``       connections to a broker that sessions share, and how a session leaves them
``auditing``   audit records: windows, and who waits for the log; ``auditing_session`` has one session's usage
               and events, ``auditing_rows`` what usage is summed by, ``auditing_columns`` what is said of an
               operation, ``auditing_channel`` what a channel waits for, ``auditing_limits`` what limits did
``door``       limits of connections and logins: who comes in, who waits, who is turned away
``principals`` who a client is, where the broker is told another user; ``selected`` whom policies select
``throttles``  the buckets of rate limits, and who shares them; ``board`` has those of several workers
``rations``    limits of single operations, and of messages that are judged one by one
``leases``     buckets that several processes share through Redis
``calls``      what operators may ask of a gateway, or of each worker: ``session_rows``, ``session_detail``,
               ``policy_rows`` and ``upstream_rows`` answer; ``looks`` makes rates, ``decisions`` keeps the
               last refusals and counts hits, ``news`` tells what happens while somebody listens
``tapping``    operators watch what passes: ``tapping_session`` per session, ``tapping_lines`` what is told
``graph``      who sends what to whom, from flows, consumers and ``bindings``; ``overview`` sums up,
               ``explaining`` asks the policies
``watch``      a look a second at who waits for a limit; ``notices`` tell the clients
``teardown``   what each side hears at the end
``hop``        one socket while a task talks on it

Neighbours: ``app`` builds it; it uses ``datapath``, ``bridge``, ``policy``, ``telemetry``, ``protocol`` and
``wire``.
"""
