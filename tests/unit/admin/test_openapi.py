"""The OpenAPI document; that answers are as it says is in tests/interop/test_gateway_admin.py."""

from __future__ import annotations

import trio
from starlette.routing import Route

from amqpgate.admin.application import application
from amqpgate.admin.http import endpoints_of
from amqpgate.admin.openapi import document
from amqpgate.admin.paths import Path
from amqpgate.app.wiring import build
from amqpgate.config import parse
from amqpgate.operator.single import SingleGateway

SETTINGS = "listeners: [{name: main, bind: '127.0.0.1:0'}]\nupstreams: [{name: broker, host: 127.0.0.1}]\n"


def test_every_path_is_in_it_with_what_it_needs() -> None:
    gateway = build(parse(SETTINGS, {}))
    try:
        subject = SingleGateway(gateway)
        routes = application(subject, endpoints_of(subject), None, over=trio.Event()).routes
    finally:
        gateway.pump.close()
        gateway.registry.fibers.close()
    assert all(isinstance(route, Path) for route in routes)
    told = document([route for route in routes if isinstance(route, Route)])
    assert told["openapi"] == "3.1.0"
    paths = told["paths"]
    assert isinstance(paths, dict)
    seen = {(route.path, route.method.lower()) for route in routes if isinstance(route, Path)}
    assert seen == {(path, method) for path, methods in paths.items() for method in methods}
    close = paths["/sessions/{id}/close"]["post"]
    assert [one["name"] for one in close["parameters"]] == ["id"]
    assert set(close["responses"]) == {"202", "400", "401", "403", "404", "421", "503"}
    assert paths["/livez"]["get"]["security"] == []
    assert paths["/sessions"]["get"]["security"] == [{"token": []}, {}]
    identifiers = [one["operationId"] for methods in paths.values() for one in methods.values()]
    assert len(identifiers) == len(set(identifiers))
