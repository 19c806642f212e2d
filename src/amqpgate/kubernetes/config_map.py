"""The ConfigMap that gateways mount: what is in force, as it stands there and as it should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from amqpgate.kubernetes.api import APPLY, MERGE, Api, ApiError
from amqpgate.resources.documents import Resource, read_back
from amqpgate.resources.in_force import ResourcesInForce
from amqpgate.resources.settings import Owner

#: Who writes it, as Kubernetes notes it for each field.
FIELD_MANAGER: Final = "amqpgate-operator"
DIGEST: Final = "amqpgate.io/digest"


@attrs.define(eq=False)
class PolicyMap:
    """One ConfigMap, watched."""

    api: Api
    namespace: str
    name: str
    owner: Owner | None
    on_change: Callable[[], None]
    #: What stands in it; None: it is not there.
    files: dict[str, str] | None = None
    #: Whether that is known.
    is_listed: bool = False
    _listing: Resource | None = attrs.field(default=None, init=False)

    @property
    def path(self) -> str:
        """Where the API server has it and its like."""
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    # -- what is there ----------------------------------------------------------------------------

    async def take_page(self, objects: list[Resource]) -> None:
        """The list of one, or of none."""
        for one in objects:
            self._listing = one

    def take_unreadable(self, name: str) -> None:
        """It is texts: nothing in it is too deep."""
        raise ApiError(f"the ConfigMap {name} cannot be read", 500)

    def listed(self) -> None:
        """It is there, or it is not."""
        found, self._listing = self._listing, None
        self.is_listed = True
        self._know(found)

    async def take(self, resource: Resource) -> None:
        """It is another one than before."""
        self._know(resource)

    def lose(self, _resource: Resource) -> None:
        """It is gone."""
        self._know(None)

    def _know(self, found: Resource | None) -> None:
        self.files = None if found is None else _files_of(found)
        self.on_change()

    def in_force(self) -> ResourcesInForce:
        """What an operator has put there."""
        read = [read_back(name, text) for name, text in (self.files or {}).items()]
        return ResourcesInForce({one.key: one for one in read if one is not None})

    # -- what should be there ---------------------------------------------------------------------

    async def write(self, files: dict[str, str], digest: str) -> None:
        """Put files there, and nothing else. Raises `ApiError`."""
        metadata: Resource = {
            "name": self.name,
            "namespace": self.namespace,
            "labels": {"app.kubernetes.io/managed-by": FIELD_MANAGER},
            "annotations": {DIGEST: digest},
        }
        owner = await self._owner()
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        wanted: Resource = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": dict(files),
        }
        path = f"{self.path}/{self.name}"
        written = await self.api.patch(path, wanted, APPLY, fieldManager=FIELD_MANAGER, force="true")
        # Apply leaves alone what others have added: a policy that no resource says.
        others = _files_of(written).keys() - files.keys()
        binary = written.get("binaryData")
        if others or binary:
            unwanted: Resource = {"data": dict.fromkeys(others), "binaryData": None}
            written = await self.api.patch(path, unwanted, MERGE, fieldManager=FIELD_MANAGER)
        self.files = _files_of(written)

    async def _owner(self) -> Resource | None:
        if self.owner is None:
            return None
        plural = f"{self.owner.kind.lower()}s"
        path = f"/apis/apps/v1/namespaces/{self.namespace}/{plural}/{self.owner.name}"
        metadata = (await self.api.get(path)).get("metadata")
        uid = metadata.get("uid") if isinstance(metadata, dict) else None
        return {"apiVersion": "apps/v1", "kind": self.owner.kind, "name": str(self.owner.name), "uid": uid}


def _files_of(found: Resource) -> dict[str, str]:
    data = found.get("data")
    if not isinstance(data, dict):
        return {}
    return {name: text for name, text in data.items() if isinstance(text, str)}
