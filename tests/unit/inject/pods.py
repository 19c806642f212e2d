"""Pods to inject into."""

from __future__ import annotations

import copy

from amqpgate.yamldoc.schema import Json

URL = "amqp://orders:s3cret@rabbit.mq:5672/shop?heartbeat=10"
SECRET: Json = {"secretKeyRef": {"name": "rabbit", "key": "url"}}


def env(name: str, value: Json) -> dict[str, Json]:
    """One entry of a container's environment: a text, or where it comes from."""
    return {"name": name, "value" if isinstance(value, str) else "valueFrom": value}


def container(*entries: dict[str, Json], name: str = "app", **more: Json) -> dict[str, Json]:
    """A container with this environment."""
    return {"name": name, "image": "shop:1", "env": list[Json](entries), **more}


def pod(
    *containers: dict[str, Json], annotations: dict[str, Json] | None = None, **spec: Json
) -> dict[str, Json]:
    """A pod with these containers."""
    metadata: dict[str, Json] = {"name": "shop"}
    if annotations is not None:
        metadata["annotations"] = {f"amqpgate.io/{key}": value for key, value in annotations.items()}
    return copy.deepcopy(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": list[Json](containers), **spec},
        }
    )
