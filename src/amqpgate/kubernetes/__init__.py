"""The operator: policies that are custom resources get into the ConfigMap that gateways mount.

In come the `Operator` settings and an API server; out come a ConfigMap, the statuses of resources and
events. What is decided is decided by `amqpgate.resources`, which is pure; this room waits, asks and writes.

- `api`: requests and watches, over trio.
- `watching`: the objects of one path, listed and watched, whatever the API server does.
- `shelf`: the resources of one kind in one namespace; `config_map`: the ConfigMap.
- `reconciling`: what there is, into what should be.
- `events`, `metrics`: what is told of it.
- `lease`: one of several operators works.
- `serving`: the process.

Neighbours: ``cli`` calls it; it knows `amqpgate.resources`, `amqpgate.admin` (taking in connections of
HTTP) and `amqpgate.gateway.identity.https` (authorities).
"""
