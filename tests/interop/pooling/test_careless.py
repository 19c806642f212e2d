"""The tests of this folder can fail: a pool that keeps no promise does not pass them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis.errors import Flaky

from tests.interop.pooling import test_faults, test_identity, test_losses, test_machine, test_scope
from tests.interop.pooling.ways import Place, opened
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Gone, Talker, Unexpected

VHOST = "careless"


def anything(_: object) -> None:
    """Nothing to compare with."""


NOTICED: dict[str, Callable[[Place], None]] = {
    "an exclusive queue is everybody's": lambda place: (
        test_scope.test_an_exclusive_queue_is_locked_for_the_others(place, anything)
    ),
    "an exclusive queue outlives its owner": lambda place: (
        test_scope.test_an_exclusive_queue_goes_with_its_owner(place, Talker.bye)
    ),
    "one's error ends all": lambda place: test_faults.test_an_error_ends_one_connection(
        place, anything, "consumer tag used twice"
    ),
    "one's garbage ends all": lambda place: test_faults.test_a_malformed_content_header(
        place, "a text longer than all"
    ),
    "half a message is left": lambda place: test_losses.test_nothing_is_left_of_one_that_vanishes(
        place, "after the header", Talker.close
    ),
    "any password is right": lambda place: test_identity.test_wrong_credentials_right_after_right_ones(
        place, anything, "guest"
    ),
    # What it leaves behind of one run is met by the next.
    "any of it": lambda place: test_machine.play(place, 10, 40),
}


@pytest.fixture
def place(rabbitmq: RabbitMQ) -> Iterator[Place]:
    rabbitmq.fresh_vhost(VHOST)
    with opened("careless", rabbitmq) as way:
        place = Place(way, VHOST, patience=3)
        yield place
        for client in place.clients:
            client.close()
    rabbitmq.eval(f'rabbit_vhost:delete(<<"{VHOST}">>, <<"guest">>).')


def test_what_is_not_promised_passes(place: Place) -> None:
    """So that what is noticed below is not merely that nothing works."""
    test_scope.test_the_same_consumer_tag_at_each_client(place)
    place.bystander().leave()


@pytest.mark.parametrize("what", NOTICED)
def test_it_is_noticed(place: Place, what: str) -> None:
    with pytest.raises((AssertionError, Gone, Unexpected, OSError, Flaky)) as noticed:
        NOTICED[what](place)
    print(repr(noticed.value)[:300])
