"""The container that is put into a pod. The chart's template writes the same; a test compares."""

from __future__ import annotations

from typing import Final, cast

import attrs

from amqpgate.inject.settings import Injector
from amqpgate.inject.variables import Entry
from amqpgate.yamldoc.schema import Json

NAME: Final = "amqpgate"
ADMIN_PORT: Final = 15680
PROBES_PORT: Final = 15681
_PROBES: Final = "amqpgate-probes"
#: Not root; the image's user.
_USER: Final = 10001
#: Seconds that a classic sidecar goes on for, of the 30 that a pod usually has.
_LAST_WORDS: Final = 15
_POLICIES: Final = ("amqpgate-policies", "/etc/amqpgate/policies")
_CONFIG: Final = ("amqpgate-config", "/etc/amqpgate/config")


@attrs.frozen(kw_only=True)
class Sidecar:
    """One sidecar, and what it needs of its pod."""

    settings: Injector
    #: On 127.0.0.1, for the application.
    port: int
    #: Its environment: where the broker is.
    env: list[Entry]
    #: ConfigMaps.
    policies: str | None
    config: str | None

    def container(self) -> Entry:
        """Its container, as ``spec.initContainers`` or ``spec.containers`` takes it."""
        settings = self.settings
        container: Entry = {
            "name": NAME,
            "image": settings.image,
            "args": list[Json](self._arguments()),
            "env": list[Json](self.env),
            "ports": [{"name": _PROBES, "containerPort": PROBES_PORT, "protocol": "TCP"}],
            "startupProbe": _probe("/startupz", periodSeconds=1, failureThreshold=120),
            "readinessProbe": _probe("/readyz", periodSeconds=5, timeoutSeconds=3, failureThreshold=2),
            "livenessProbe": _probe("/livez", periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
            "resources": _resources(settings),
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "privileged": False,
                "readOnlyRootFilesystem": True,
                "runAsGroup": _USER,
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        }
        if settings.image_pull_policy is not None:
            container["imagePullPolicy"] = settings.image_pull_policy
        if settings.sidecar == "native":
            # It gets its SIGTERM when the application has ended, and drains then. A preStop hook would run at
            # once, while the application still works.
            container["restartPolicy"] = "Always"
        else:
            # All containers are told to stop at once: it waits for the application's last words, then drains.
            script = f"import time; time.sleep({_LAST_WORDS})"
            container["lifecycle"] = {"preStop": {"exec": {"command": ["python", "-c", script]}}}
        mounts: list[Json] = [
            {"name": name, "mountPath": path, "readOnly": True} for name, path, _ in self._mounts()
        ]
        if mounts:
            container["volumeMounts"] = mounts
        return container

    def volumes(self) -> list[Entry]:
        """What it mounts, as ``spec.volumes`` takes it."""
        return [{"name": name, "configMap": {"name": source}} for name, _, source in self._mounts()]

    def _mounts(self) -> list[tuple[str, str, str]]:
        """Volume, path and ConfigMap. Side by side: nothing can be mounted below a ConfigMap."""
        wanted = ((_CONFIG, self.config), (_POLICIES, self.policies))
        return [(name, path, source) for (name, path), source in wanted if source is not None]

    def _arguments(self) -> list[str]:
        if self.config is not None:
            arguments = ["--config", f"{_CONFIG[1]}/amqpgate.yaml"]
        else:
            arguments = ["--listen", f"127.0.0.1:{self.port}", "--admin", f"127.0.0.1:{ADMIN_PORT}"]
            arguments += ["--probes", f"0.0.0.0:{PROBES_PORT}", "--log-format", "json"]
            if self.policies is not None:
                arguments += ["--policies", _POLICIES[1]]
        return ["run", *arguments]


def _probe(path: str, **times: int) -> Entry:
    return {"httpGet": {"path": path, "port": _PROBES}, **times}


def _resources(settings: Injector) -> Entry:
    asked = {"requests": settings.resources.requests, "limits": settings.resources.limits}
    # Any value that YAML can say is one that JSON can.
    return {key: cast("Json", dict(value)) for key, value in asked.items() if value}
