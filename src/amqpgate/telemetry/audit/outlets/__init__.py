"""Who gets audit records as they are written, as events of OCSF, beside the files and lines.

::

    writer's thread ── piece ──▶ Outlet: queue ── its thread: events ──▶ Receiver ──▶ otlp, bulk, amqp
                                   └─ full: who causes events waits, or the piece is dropped

- `outlet`: `Outlet`, a bounded queue and its thread.
- `sending`: `Sending`, what that thread does with records until they are taken, or known never to be.
- `events`: a piece's records as events of OCSF.
- `receiver`: what a `Receiver` is told, and what it answers.
- `otlp`, `bulk`, `amqp`: log records, documents, messages. `publisher`: the connection of the last.
- `fan_out`: `FanOut`, the log's sink where there are outlets, and all of them as `Outlets`.
- `opening`: those that the settings name. `counts`: what became of their records.

Loaded where the settings name one.
"""
