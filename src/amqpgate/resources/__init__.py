"""Policies as custom resources of Kubernetes, pure: resources go in, a policy folder and statuses come out.

In come resources as JSON values, from the API server, and the `Operator` settings; out come the files of a
policy folder, and what each resource is told. What its author got wrong is a `RefusedResource`. Nothing
here does I/O.

- `definitions`: the kinds of policies as CustomResourceDefinitions.
- `documents`: one resource as a document, bounded, with errors by path.
- `in_force`: which version of which resource holds.
- `status`: what a resource's status says.
- `review`: what the API server is answered before it stores a resource.
- `settings`: the types of the operator's settings file.

``python -m amqpgate.resources`` prints the definitions, ``--schema`` the JSON Schema of the settings,
``--table`` their table.

Neighbours: `amqpgate.kubernetes` speaks with the API server, ``cli`` prints the definitions; it knows
`amqpgate.policy`, `amqpgate.config` and `amqpgate.yamldoc`.
"""
