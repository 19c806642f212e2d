"""What is in force, and what becomes of it when resources change.

A resource counts in the last version of it that was valid. So one that becomes invalid takes nothing away and
opens nothing; it is gone when it is deleted. What is in force goes before what comes: where two resources
exclude each other, the newcomer is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs

from amqpgate.errors import ConfigError
from amqpgate.policy import Source, build
from amqpgate.policy.engine.inclusion import subject_within
from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.kinds.compatibility_document import CompatibilityPolicy
from amqpgate.policy.kinds.kind import PolicyKind
from amqpgate.policy.kinds.rate import RatePolicy
from amqpgate.policy.kinds.registry import POLICY_KINDS
from amqpgate.policy.kinds.route_document import RoutePolicy
from amqpgate.resources.documents import RefusedResource, Resource, ResourceKey, WrittenResource, written
from amqpgate.resources.settings import GatewayFacts, Operator, Tenant
from amqpgate.yamldoc import nearest

#: Bytes of a ConfigMap are 1 MiB at most, with its keys and what else it says.
MOST_BYTES: Final = 1_000_000
#: Resources, a file each; a gateway reads no more files than that.
MOST_RESOURCES: Final = 1000
#: Of them, those of one further namespace, and their bytes: it does not use up what all have.
MOST_OF_TENANT: Final = 200
MOST_BYTES_OF_TENANT: Final = 200_000

_KINDS: Final = {kind.name: kind for kind in POLICY_KINDS}


@attrs.frozen
class Found:
    """A resource as the API server has it now, judged by itself."""

    key: ResourceKey
    uid: str
    generation: int
    #: When it was made, as Kubernetes writes it, which sorts.
    created: str
    #: Valid; or why it is not.
    judged: WrittenResource | RefusedResource = attrs.field(repr=False)


@attrs.frozen
class ResourcesInForce:
    """The policies that hold, by resource."""

    resources: Mapping[ResourceKey, WrittenResource]

    @property
    def files(self) -> dict[str, str]:
        """As they stand in a ConfigMap."""
        if not self.resources:
            # A folder without any file is an error to a gateway, as a mount that has failed is.
            return {"none.yaml": "# No policy is in force.\n"}
        return {one.key.file: one.text for one in self.resources.values()}

    @property
    def digest(self) -> str:
        """As a gateway that has read all of it tells it. Raises `ConfigError` where none could."""
        files = self.files
        return build([Source(name, files[name].encode()) for name in sorted(files)]).digest


@attrs.frozen
class SettledResources:
    """What is in force from now on, and who did not get there."""

    in_force: ResourcesInForce
    refused: Mapping[ResourceKey, RefusedResource]


@attrs.frozen
class ResourceJudge:
    """Judges resources, each by itself and then all together."""

    namespace: str
    tenants: Mapping[str, Tenant]
    gateway: GatewayFacts

    @classmethod
    def of(cls, settings: Operator, namespace: str) -> ResourceJudge:
        """By the operator's settings."""
        tenants = {str(tenant.namespace): tenant for tenant in settings.tenants}
        return cls(namespace, tenants, settings.gateway)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Whose resources count."""
        return (self.namespace, *self.tenants)

    def judged(
        self, key: ResourceKey, resource: Resource, generation: int
    ) -> WrittenResource | RefusedResource:
        """One resource by itself."""
        tenant = self.tenants.get(key.namespace)
        # No name of the operator's own namespace has a slash: nobody takes another's.
        name = key.name if key.namespace == self.namespace else f"{key.namespace}/{key.name}"
        try:
            if key.namespace != self.namespace and tenant is None:
                raise RefusedResource("OutOfBounds", "nobody in this namespace may write policies")
            if tenant is not None and key.kind not in tenant.kinds:
                allowed = ", ".join(tenant.kinds)
                raise RefusedResource("OutOfBounds", f"in this namespace one may write {allowed} only")
            made = written(key, name, resource, generation)
            if tenant is not None:
                _check_subjects(made, tenant)
            _check_gateway(made, self.gateway)
        except RefusedResource as refused:
            return refused
        return made

    def still_holds(self, resource: WrittenResource) -> bool:
        """Whether what was in force before is within what its authors may do today."""
        tenant = self.tenants.get(resource.key.namespace)
        if resource.key.namespace == self.namespace:
            return True
        try:
            if tenant is None or resource.key.kind not in tenant.kinds:
                return False
            _check_subjects(resource, tenant)
        except RefusedResource:
            return False
        return True

    def settle(
        self,
        before: ResourcesInForce,
        found: Sequence[Found],
        unlisted: Collection[tuple[str, str]] = (),
    ) -> SettledResources:
        """What holds of what was in force, and of what is there now.

        Of a kind in a namespace that could not be listed nothing is known, so all of it stays.
        """
        there = {one.key: one for one in found}
        held = {
            key: one
            for key, one in before.resources.items()
            if (key in there or (key.kind, key.namespace) in unlisted) and self.still_holds(one)
        }
        refused = {one.key: one.judged for one in found if isinstance(one.judged, RefusedResource)}
        changed = [
            one.judged
            for one in sorted(found, key=lambda one: (one.created, one.key))
            if isinstance(one.judged, WrittenResource) and held.get(one.key) != one.judged
        ]
        self._add(held, changed, refused)
        return SettledResources(ResourcesInForce(dict(sorted(held.items()))), refused)

    def _add(
        self,
        held: dict[ResourceKey, WrittenResource],
        changed: Sequence[WrittenResource],
        refused: dict[ResourceKey, RefusedResource],
    ) -> None:
        """Those of the changed that go together with what is held; the first that came goes first."""
        sums = _Sums.of(held.values())
        fitting = []
        for one in changed:
            why = sums.refusal(one, held.get(one.key), one.key.namespace in self.tenants)
            if why is None:
                sums.swap(one, held.get(one.key))
                fitting.append(one)
            else:
                refused[one.key] = why
        for kind in {one.key.kind for one in fitting}:
            ours = {key: one for key, one in held.items() if key.kind == kind}
            news = [one for one in fitting if one.key.kind == kind]
            self._add_kind(kind, ours, news, refused)
            held.update(ours)

    def _add_kind(
        self,
        kind: str,
        held: dict[ResourceKey, WrittenResource],
        changed: Sequence[WrittenResource],
        refused: dict[ResourceKey, RefusedResource],
    ) -> None:
        whole = {**held, **{one.key: one for one in changed}}
        try:
            _check_together(kind, whole.values())
        except ConfigError as error:
            if len(changed) == 1:
                refused[changed[0].key] = RefusedResource("Conflict", str(error))
                return
            middle = len(changed) // 2
            self._add_kind(kind, held, changed[:middle], refused)
            self._add_kind(kind, held, changed[middle:], refused)
            return
        held.update(whole)


@attrs.define
class _Sums:
    """How much there is, in all and of each namespace."""

    sizes: dict[str, int]
    counts: dict[str, int]

    @classmethod
    def of(cls, resources: Iterable[WrittenResource]) -> _Sums:
        sums = cls({}, {})
        for one in resources:
            sums.swap(one, None)
        return sums

    def swap(self, new: WrittenResource, old: WrittenResource | None) -> None:
        """Count one in the place of another."""
        space = new.key.namespace
        self.sizes[space] = self.sizes.get(space, 0) + _size(new) - (0 if old is None else _size(old))
        self.counts[space] = self.counts.get(space, 0) + (old is None)

    def refusal(
        self, new: WrittenResource, old: WrittenResource | None, is_tenant: bool
    ) -> RefusedResource | None:
        """Why there is no room for one in the place of another."""
        grows = _size(new) - (0 if old is None else _size(old))
        space, is_new = new.key.namespace, old is None
        if is_tenant and self.counts.get(space, 0) + is_new > MOST_OF_TENANT:
            return RefusedResource("TooMany", f"{MOST_OF_TENANT} of this namespace are in force already")
        if is_tenant and grows > 0 and self.sizes.get(space, 0) + grows > MOST_BYTES_OF_TENANT:
            return RefusedResource(
                "TooLarge", f"those of this namespace have {MOST_BYTES_OF_TENANT} bytes at most"
            )
        if sum(self.counts.values()) + is_new > MOST_RESOURCES:
            return RefusedResource("TooMany", f"{MOST_RESOURCES} are in force already")
        if grows > 0 and sum(self.sizes.values()) + grows > MOST_BYTES:
            return RefusedResource(
                "TooLarge", f"all together have {MOST_BYTES} bytes at most, as a ConfigMap has"
            )
        return None


def _size(one: WrittenResource) -> int:
    return len(one.key.file) + len(one.text.encode())


def _check_together(kind: str, resources: Iterable[WrittenResource]) -> None:
    """Raises `ConfigError` where documents of a kind exclude each other."""
    known = _KINDS.get(kind)
    if known is not None:
        known.check([one.placed for one in resources])


def _check_subjects(made: WrittenResource, tenant: Tenant) -> None:
    kind = _KINDS[made.key.kind]
    assert isinstance(kind, PolicyKind)
    for path, subject in kind.subjects(made.placed.document):
        if not any(subject_within(subject, bound) for bound in tenant.subjects):
            error = made.placed.mark(*path).error(
                "selects whom policies of this namespace may not select; each subject has to lie within "
                + " or ".join(_shown(bound) for bound in tenant.subjects)
            )
            raise RefusedResource("OutOfBounds", str(error))


def _shown(bound: Subject) -> str:
    parts = [f"user {bound.user}"]
    if bound.vhosts is not None:
        parts.append(f"vhosts {', '.join(map(str, bound.vhosts))}")
    others = ("source_cidr", "listeners", "tls", "groups", "scopes", "claims", "client")
    if any(getattr(bound, name) for name in others):
        parts.append("more that the operator's settings say")
    return ", ".join(parts)


def _check_gateway(made: WrittenResource, gateway: GatewayFacts) -> None:
    """Raises `RefusedResource` for what the gateways would refuse, and all else with it."""
    document = made.placed.document
    if isinstance(document, RatePolicy) and not gateway.shared_limits:
        for index, limit in enumerate(document.spec.limits):
            if limit.shared:
                raise _unfit(made, "the gateways have no sharedLimits", "spec", "limits", index, "shared")
    asks_store = isinstance(document, CompatibilityPolicy) and document.spec.claim_check is not None
    if asks_store and not gateway.claim_checks:
        raise _unfit(made, "the gateways have no object store for bodies", "spec", "claim_check")
    if isinstance(document, RoutePolicy) and gateway.upstreams is not None:
        for index, route in enumerate(document.spec.routes):
            mirror = route.upstream.mirror
            named = [share.cluster for share in route.upstream.shares]
            named += [] if mirror is None else [mirror.cluster]
            for name in named:
                if name not in gateway.upstreams:
                    near = nearest(name, gateway.upstreams)
                    known = ", ".join(gateway.upstreams)
                    said = f"the gateways have no upstream '{name}'{near}; there are {known}"
                    raise _unfit(made, said, "spec", "routes", index, "upstream")


def _unfit(made: WrittenResource, message: str, *path: str | int) -> RefusedResource:
    return RefusedResource("Unfit", str(made.placed.mark(*path).error(message)))
