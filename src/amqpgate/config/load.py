"""Settings from a file or from flags, and the documents about them."""

from __future__ import annotations

from collections.abc import Mapping as AbstractMapping
from pathlib import Path

from amqpgate.config.settings import Settings
from amqpgate.errors import ConfigError
from amqpgate.yamldoc import (
    Mapping,
    Mark,
    Node,
    Sequence,
    compose,
    expand,
    from_python,
    read,
    schema_for,
    structure,
)
from amqpgate.yamldoc import describe as describe_type
from amqpgate.yamldoc.schema import Schema

SCHEMA_ID = "https://amqpgate.io/schema/config.json"


def load(path: Path, environ: AbstractMapping[str, str]) -> Settings:
    """The settings in the file at ``path``; ``environ`` fills ``${NAME}``. `ConfigError` cites the place."""
    return _settings(read(path), str(path), environ)


def parse(text: str, environ: AbstractMapping[str, str], *, file: str = "config.yaml") -> Settings:
    """The settings in ``text``; ``file`` is the name that errors cite and that relative paths start from."""
    return _settings(compose(text, file), file, environ)


def _settings(documents: tuple[Node, ...], file: str, environ: AbstractMapping[str, str]) -> Settings:
    if not documents:
        raise ConfigError("the file is empty: it needs listeners and upstreams", file=file)
    if len(documents) > 1:
        raise documents[1].mark.error("a configuration file is one document; remove the '---'")
    return structure(expand(documents[0], environ), Settings)


def from_flags(
    listen: str,
    upstream_url: str,
    *,
    policies: str | None = None,
    admin: str | None = None,
    probes: str | None = None,
    log_format: str | None = None,
    log_level: str | None = None,
    allow_anonymous: bool = False,
) -> Settings:
    """The settings of one listener and one upstream, without a file; `ConfigError` cites the flag."""
    listener: dict[str, Node] = {
        "name": from_python("default", "--listen"),
        "bind": from_python(listen, "--listen"),
        "allowAnonymous": from_python(allow_anonymous, "--listen"),
    }
    upstream: dict[str, Node] = {
        "name": from_python("default", "--upstream"),
        "url": from_python(upstream_url, "--upstream"),
    }
    root: dict[str, Node] = {
        "listeners": Sequence((_mapping(listener, "--listen"),), Mark("--listen")),
        "upstreams": Sequence((_mapping(upstream, "--upstream"),), Mark("--upstream")),
    }
    if policies is not None:
        root["policies"] = from_python(policies, "--policies")
    windows = {"bind": ("--admin", admin), "probes": ("--probes", probes)}
    shown = {key: from_python(text, flag) for key, (flag, text) in windows.items() if text is not None}
    if shown:
        root["admin"] = _mapping(shown, "--admin")
    log: dict[str, Node] = {}
    if log_format is not None:
        log["format"] = from_python(log_format, "--log-format")
    if log_level is not None:
        log["level"] = from_python(log_level, "--log-level")
    root["log"] = _mapping(log, "--log-format")
    return structure(_mapping(root, "command line"), Settings)


def _mapping(entries: dict[str, Node], source: str) -> Mapping:
    return Mapping(entries, {key: node.mark for key, node in entries.items()}, Mark(source))


def describe() -> str:
    """A Markdown table of every key, its type, default and meaning, for ``docs/configuration.md``."""
    return describe_type(Settings)


def schema() -> Schema:
    """The JSON Schema of the configuration file, as committed in ``spec/schema/config.json``."""
    return schema_for(Settings, identifier=SCHEMA_ID, environment=True)
