"""The audit log: records of what passed and what happened, written by one thread of their own.

In come events and, at the end of each window, sums of usage by row; out go Parquet files or lines of JSON,
as `amqpgate.records` has them. Nothing here looks at a message, and nobody who records waits for a disk:

- `rows`: `AuditRow`, `Sums`, what an event may say.
- `log`: `AuditLog`, what the gateway calls; `open_log` from the settings.
- `writer`: the thread; it tries again until it is written.
- `pieces`: what waits, as columns, with record ids.
- `parquet`, `lines`: where pieces go. `stream`: the file that outlives a crash, until it is made Parquet.
- `arrow`: pyarrow, with no more of it than that takes.

Neighbours: ``app`` wires it, ``gateway`` records.
"""
