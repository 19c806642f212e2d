"""What a pod's annotations ask for.

=================================  ==================================================================
``amqpgate.io/inject``             ``disabled``: leave the pod as it is; ``enabled``: refuse it if
                                   there is nothing to do
``amqpgate.io/env``                variables that hold an AMQP URL, separated by commas
``amqpgate.io/upstream``           the broker, as a URL without a login
``amqpgate.io/upstream-secret``    a Secret and its key, ``NAME/KEY``, that holds the broker's URL
``amqpgate.io/policies``           ConfigMap with policies
``amqpgate.io/config``             ConfigMap with settings (``amqpgate.yaml``), in the place of flags
``amqpgate.io/port``               the sidecar's port on 127.0.0.1
=================================  ==================================================================

A key with this prefix that is none of them is refused: with a slip in ``policies``, a pod would run without.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from amqpgate.config import AmqpUrl
from amqpgate.inject.values import NotInjectedError, mapping_at, text_at
from amqpgate.yamldoc import nearest
from amqpgate.yamldoc.schema import Json

PREFIX: Final = "amqpgate.io/"
INJECT: Final = PREFIX + "inject"
ENV: Final = PREFIX + "env"
UPSTREAM: Final = PREFIX + "upstream"
UPSTREAM_SECRET: Final = PREFIX + "upstream-secret"
POLICIES: Final = PREFIX + "policies"
CONFIG: Final = PREFIX + "config"
PORT: Final = PREFIX + "port"
#: Left behind by the injector: its version.
INJECTED: Final = PREFIX + "injected"

_KNOWN: Final = (INJECT, ENV, UPSTREAM, UPSTREAM_SECRET, POLICIES, CONFIG, PORT, INJECTED)
_ANSWERS: Final = {"enabled": True, "true": True, "disabled": False, "false": False}
#: Names of objects and of their keys, as the API server takes them.
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_KEY = re.compile(r"[A-Za-z0-9._-]{1,253}")
_VARIABLE = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")


@attrs.frozen(kw_only=True)
class Wishes:
    """The annotations of one pod; None where it says nothing."""

    inject: bool | None
    env: tuple[str, ...] | None
    upstream: str | None
    #: Name and key.
    upstream_secret: tuple[str, str] | None
    policies: str | None
    config: str | None
    port: int | None
    #: An injector has been here before.
    is_injected: bool = False

    @property
    def insists(self) -> bool:
        """Whether the pod cannot mean to go without."""
        return self.inject is True or any((self.env, self.upstream, self.upstream_secret, self.config))


def wishes_of(pod: dict[str, Json]) -> Wishes:
    """The wishes of a pod; `NotInjectedError` where one cannot be understood."""
    annotations = mapping_at(mapping_at(pod, "metadata", "pod"), "annotations", "metadata")
    for key in annotations:
        if key.startswith(PREFIX) and key not in _KNOWN:
            raise NotInjectedError(f"unknown annotation '{key}'{nearest(key, _KNOWN)}")
    said = {key: text_at(annotations, key, "annotation") for key in _KNOWN if key in annotations}
    if UPSTREAM in said and UPSTREAM_SECRET in said:
        raise NotInjectedError(f"annotations {UPSTREAM} and {UPSTREAM_SECRET} exclude each other")
    return Wishes(
        inject=_yes_or_no(said[INJECT]) if INJECT in said else None,
        env=_names(said[ENV]) if ENV in said else None,
        upstream=_upstream(said[UPSTREAM]) if UPSTREAM in said else None,
        upstream_secret=_secret(said[UPSTREAM_SECRET]) if UPSTREAM_SECRET in said else None,
        policies=_config_map(POLICIES, said[POLICIES]) if POLICIES in said else None,
        config=_config_map(CONFIG, said[CONFIG]) if CONFIG in said else None,
        port=_port(said[PORT]) if PORT in said else None,
        is_injected=INJECTED in said,
    )


def _yes_or_no(text: str) -> bool:
    if text not in _ANSWERS:
        raise NotInjectedError(f"annotation {INJECT} is enabled or disabled, not '{text}'")
    return _ANSWERS[text]


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(_VARIABLE.fullmatch(name) for name in names):
        raise NotInjectedError(f"annotation {ENV} is a list of variables such as AMQP_URL,BROKER_URL")
    return names


def _upstream(text: str) -> str:
    try:
        url = AmqpUrl.parse(text)
    except ValueError as error:
        raise NotInjectedError(f"annotation {UPSTREAM}: {error}") from None
    if url.user is not None:
        raise NotInjectedError(
            f"annotation {UPSTREAM} has a login in it, which everybody who may list pods can read: "
            f"put the URL into a Secret, and name it in {UPSTREAM_SECRET}"
        )
    return text


def _secret(text: str) -> tuple[str, str]:
    name, slash, key = text.partition("/")
    if not slash or not _NAME.fullmatch(name) or not _KEY.fullmatch(key):
        raise NotInjectedError(f"annotation {UPSTREAM_SECRET} is the name of a Secret and a key: NAME/KEY")
    return name, key


def _config_map(annotation: str, text: str) -> str:
    if not _NAME.fullmatch(text):
        raise NotInjectedError(f"annotation {annotation} is the name of a ConfigMap")
    return text


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
        raise NotInjectedError(f"annotation {PORT} is a port from 1 to 65535")
    return int(text)
