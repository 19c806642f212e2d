"""The values of the Helm chart: their JSON Schema, and what is wrong with a file of them, pure.

In come the nodes of values files; out come errors at file, line and column, as for settings and policies.

- ``values.json``: the schema of the chart's own values, written by hand.
- `schema`: that, with the schemas of settings and policies: the chart's ``values.schema.json``.
- `checking`: values against it, all errors at once.
- `together`: what does not go together in them, as the chart's templates refuse it; and passwords in clear.
- `finding`: values by their path, in several files.

Neighbours: ``cli`` calls it; it knows `amqpgate.resources`, `amqpgate.inject`, `amqpgate.policy`,
`amqpgate.config` and `amqpgate.yamldoc`.
"""
