"""Who looks on at sessions: audit records, spans, taps, mirrors, statistics.

In come the moments of a session (`gateway.session.observer`), all of them in upcalls of the data path; out go
records, spans, lines, copies and numbers. No session knows an observer by name, none waits for one but by
``holds_up``, and none is harmed by one.

``factories``  one line for each kind, in the order in which they are told
``stats``      decisions, bindings, how long confirms take, totals, and the log's lines of sessions
``tap``        operators watch the operations that an expression is about
``audit``      who did what: usage by row, and events
``trace``      spans of what policies choose, and the trace context in messages
``mirror``     copies of publishes for another cluster

Each of them is a folder. ``session`` has the observer of one session; what a gateway has once is beside it.
Neighbours: `gateway.session` below; `gateway.pool`, `gateway.handshake` and `gateway.server` above.
"""
