"""One pod, changed: the application's AMQP URLs lead to a sidecar, which leads to the broker."""

from __future__ import annotations

import copy

import attrs

from amqpgate import __version__
from amqpgate.inject.settings import Injector
from amqpgate.inject.sidecar import ADMIN_PORT, NAME, PROBES_PORT, Sidecar
from amqpgate.inject.values import NotInjectedError, mapping_at, mappings_at, text_at
from amqpgate.inject.variables import UPSTREAM, Entry, Variable, variables_in
from amqpgate.inject.wishes import ENV, INJECT, INJECTED, PORT, UPSTREAM_SECRET, Wishes, wishes_of
from amqpgate.inject.wishes import UPSTREAM as UPSTREAM_WISH
from amqpgate.yamldoc.schema import Json


@attrs.frozen
class Injection:
    """A pod with its sidecar."""

    pod: dict[str, Json]
    #: The variables that lead to the sidecar now, as ``NAME of container NAME``.
    variables: tuple[str, ...]


def inject(pod: dict[str, Json], settings: Injector) -> Injection | None:
    """The pod with a sidecar in it. None where there is nothing to do: it has one, wants none, or has no AMQP
    URL. ``pod`` is a Pod or a pod template; it is not changed.

    Raises ``NotInjectedError`` where a sidecar is wanted and cannot be had.
    """
    wishes = wishes_of(pod)
    pod = copy.deepcopy(pod)
    spec = mapping_at(pod, "spec", "pod")
    init = mappings_at(spec, "initContainers", "spec")
    containers = mappings_at(spec, "containers", "spec")
    has_one = _has_one(init + containers)
    if wishes.inject is False or (has_one and wishes.is_injected):
        return None

    native = settings.sidecar == "native"
    # A classic sidecar starts after all init containers: they go to the broker directly.
    served = init + containers if native else containers
    names = wishes.env or settings.variables
    found = list(variables_in(served, names, named=wishes.env is not None))
    added = _from_elsewhere(served, wishes)
    if not found and not added:
        _check_why_none(wishes)
        if wishes.inject is not True:
            return None
    if has_one:
        raise NotInjectedError(
            f"the pod has a container named {NAME} that no injector has put there: give it another name, or, "
            f"if it is a sidecar of your own, say {INJECT}: disabled"
        )
    port = wishes.port or settings.port
    _check_pod(spec, init + containers, port, native)

    sidecar = Sidecar(
        settings=settings,
        port=port,
        env=_environment(wishes, found),
        policies=wishes.policies or settings.policies,
        config=wishes.config,
    )
    for variable in found:
        variable.lead_to(port)
    for name, container in added:
        entries = mappings_at(container, "env", "container")
        container["env"] = [*entries, {"name": name, "value": f"amqp://127.0.0.1:{port}"}]
    if native:
        spec["initContainers"] = [sidecar.container(), *init]
    else:
        spec["containers"] = [*containers, sidecar.container()]
    volumes = sidecar.volumes()
    if volumes:
        spec["volumes"] = [*mappings_at(spec, "volumes", "spec"), *volumes]
    metadata = mapping_at(pod, "metadata", "pod")
    annotations = mapping_at(metadata, "annotations", "metadata")
    pod["metadata"] = {**metadata, "annotations": {**annotations, INJECTED: __version__}}
    shown = [variable.shown for variable in found]
    shown += [f"{name} of container {text_at(container, 'name', 'container')}" for name, container in added]
    return Injection(pod, tuple(shown))


def why_left(pod: dict[str, Json], settings: Injector) -> str:
    """Why `inject` has nothing to do in ``pod``."""
    wishes = wishes_of(pod)
    if wishes.inject is False:
        return f"annotation {INJECT} says so"
    spec = mapping_at(pod, "spec", "pod")
    if wishes.is_injected and _has_one(
        mappings_at(spec, "initContainers", "spec") + mappings_at(spec, "containers", "spec")
    ):
        return "it has its sidecar"
    return f"no AMQP URL of another host in {', '.join(wishes.env or settings.variables)}"


def _has_one(containers: list[Entry]) -> bool:
    return any(text_at(container, "name", "container") == NAME for container in containers)


def _from_elsewhere(containers: list[Entry], wishes: Wishes) -> list[tuple[str, Entry]]:
    """Variables that the pod names, and that come whole from a Secret or ConfigMap (``envFrom``): what is in
    ``env`` goes before those."""
    if wishes.env is None or (wishes.upstream_secret is None and wishes.config is None):
        return []
    found = []
    for container in containers:
        own = {text_at(entry, "name", "env") for entry in mappings_at(container, "env", "container")}
        if container.get("envFrom"):
            found += [(name, container) for name in wishes.env if name not in own]
    return found


def _check_why_none(wishes: Wishes) -> None:
    """Refuse a pod that has no AMQP URL, if it asks for a sidecar nevertheless."""
    has_upstream = wishes.upstream or wishes.upstream_secret or wishes.config
    if wishes.inject is True and has_upstream:
        return
    if wishes.env is not None:
        raise NotInjectedError(
            f"no container has {' or '.join(wishes.env)} (annotation {ENV}); one that comes by envFrom needs "
            f"annotation {UPSTREAM_SECRET}"
        )
    if wishes.insists:
        raise NotInjectedError(
            f"no container has an AMQP URL: name its variable in annotation {ENV}, or, if the application "
            f"finds the sidecar by itself, say {INJECT}: enabled and name the broker in {UPSTREAM_WISH}"
        )


def _check_pod(spec: dict[str, Json], containers: list[Entry], port: int, native: bool) -> None:
    if spec.get("hostNetwork") is True:
        raise NotInjectedError("the pod has hostNetwork: everybody on the node would reach the sidecar")
    if not native and text_at(spec, "restartPolicy", "spec") not in ("", "Always"):
        raise NotInjectedError(
            "a classic sidecar would keep this pod from ending: it needs `sidecar: native` (Kubernetes 1.29)"
        )
    ours = {port, ADMIN_PORT, PROBES_PORT}
    if len(ours) < 3:
        raise NotInjectedError(f"port {port} is the sidecar's own for another purpose: choose another")
    for container in containers:
        label = text_at(container, "name", "container")
        for entry in mappings_at(container, "ports", f"container {label}"):
            taken = entry.get("containerPort")
            if isinstance(taken, int) and taken in ours and entry.get("protocol", "TCP") == "TCP":
                remedy = f": choose another for it in annotation {PORT}" if taken == port else ""
                raise NotInjectedError(f"container {label} has port {taken}, which the sidecar needs{remedy}")


def _environment(wishes: Wishes, found: list[Variable]) -> list[Entry]:
    """The sidecar's environment: where the broker is."""
    if wishes.upstream_secret is not None:
        name, key = wishes.upstream_secret
        return [{"name": UPSTREAM, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}}]
    if wishes.upstream is not None:
        for variable in found:
            if variable.url is None:
                raise NotInjectedError(
                    f"{variable.shown} comes from elsewhere, and its login would be lost: name the broker in "
                    f"{UPSTREAM_SECRET} in the place of {UPSTREAM_WISH}"
                )
        return [{"name": UPSTREAM, "value": wishes.upstream}]
    try:
        ways = [(variable, copy.deepcopy(variable.upstream())) for variable in found]
    except NotInjectedError:
        if wishes.config is None:
            raise
        # The settings say it.
        return []
    for variable, way in ways[1:]:
        if way != ways[0][1]:
            raise NotInjectedError(
                f"{ways[0][0].shown} and {variable.shown} name two brokers, and a sidecar has one: name one "
                f"variable in annotation {ENV}, or the broker for all in {UPSTREAM_WISH} or {UPSTREAM_SECRET}"
            )
    return ways[0][1] if ways else []
