"""The injector, pure: a pod goes in, the same pod with amqpgate beside its application comes out.

In come pods as JSON values (from the API server's admission review, or from manifests) and the `Injector`
settings; out come changed pods, JSON Patches and review answers. A pod that cannot be injected is a
`NotInjectedError`, a request that is none a `BadReviewError`. Nothing here does I/O.

- `settings`: the types of the settings file.
- `wishes`: what a pod's annotations ask for.
- `urls`: the text of AMQP URLs, which may have ``$(NAME)`` in it.
- `variables`: the environment variables that hold them.
- `sidecar`: the container that is put in.
- `pods`: one pod, changed.
- `manifests`: YAML and JSON documents with pods in them.
- `patch`: the difference of two values as a JSON Patch (RFC 6902).
- `admission`: the API server's questions, and the form of answers; `review`: the answer about a pod.
- `values`: how parts of a JSON value are taken out of it.

``python -m amqpgate.inject`` prints the table of settings, ``--schema`` their JSON Schema.

Neighbours: ``webhook`` serves it, ``cli`` runs it off line; it knows `amqpgate.config` and
`amqpgate.yamldoc`.
"""

from amqpgate.inject.admission import BadReviewError
from amqpgate.inject.manifests import InjectedManifests, ManifestOutcome, inject_manifests
from amqpgate.inject.pods import Injection, inject
from amqpgate.inject.review import ReviewAnswer, answer
from amqpgate.inject.settings import Injector, describe, load, parse, schema
from amqpgate.inject.values import NotInjectedError

__all__ = [
    "BadReviewError",
    "InjectedManifests",
    "Injection",
    "Injector",
    "ManifestOutcome",
    "NotInjectedError",
    "ReviewAnswer",
    "answer",
    "describe",
    "inject",
    "inject_manifests",
    "load",
    "parse",
    "schema",
]
