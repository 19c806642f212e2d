"""Where Spark is asked to run."""

from __future__ import annotations

import pytest

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.spark import start
from tests.support.ports import free_port


def test_a_server_of_spark_connect_that_is_not_there() -> None:
    port = free_port()
    with pytest.raises(PipelineError) as caught:
        start(f"sc://127.0.0.1:{port}/;token=secret")
    assert str(caught.value) == f"Spark Connect: nobody answers at 127.0.0.1:{port}"


@pytest.mark.parametrize("address", ["sc://host:port/;token=secret", "sc://", "sc://:0"])
def test_half_an_address_of_spark_connect(address: str) -> None:
    with pytest.raises(PipelineError) as caught:
        start(address)
    assert str(caught.value) == "Spark Connect: --master is not like sc://HOST:PORT"
