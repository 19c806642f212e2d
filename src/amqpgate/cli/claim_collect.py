"""``amqpgate claims``: what is in the object stores of claim checks."""

from __future__ import annotations

import time
from pathlib import Path

import click

from amqpgate.cli.failures import FAILED, WRONG, Failure, reported
from amqpgate.cli.policy_files import read_policies
from amqpgate.cli.telling import echo


@click.group(
    short_help="Remove bodies from object stores that no message waits for.",
    epilog="Exit codes: 0 done, 1 a store does not answer, 2 wrong input.",
)
def claims() -> None:
    """Look after the object stores that policies name in `claimCheck`."""


@claims.command(short_help="Remove what is older than keepFor.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
def collect(folder: Path, dry_run: bool) -> None:
    """Remove what is older than `keepFor`, and an hour more, from each store that the policies in DIR name.

    Nothing else is known of an object than its age: a message that waits longer than keepFor in a queue loses
    its body. Run it daily. Who asks the store is in AWS's environment variables and files.

    \b
    amqpgate claims collect policies --dry-run

    \b
    Exit codes:
      0  done
      1  a store does not answer, or refuses
      2  the policies are wrong, or name no store
    """
    from amqpgate.gateway.objects.collect import Collector
    from amqpgate.gateway.objects.s3 import S3Store
    from amqpgate.gateway.objects.store import StoreError

    with reported():
        policies, _ = read_policies(folder)
    found = [policy.spec.claim_check for policy in policies.compatibilities]
    claims = [claim for claim in found if claim is not None]
    if not claims:
        raise Failure("amqpgate: no policy there has a claimCheck", WRONG)
    for address in dict.fromkeys(claim.store for claim in claims):
        # Where several have one store, what one of them still needs stays.
        alike = [claim for claim in claims if claim.store.same_place(address)]
        collector_keeps = max(claim.keep_for for claim in alike)
        count = byte_count = 0
        try:
            collector = Collector(
                S3Store.connect(address, max(claim.timeout for claim in alike)), collector_keeps
            )
            for one in collector.old(time.time()):
                if not dry_run:
                    collector.remove(one)
                count += 1
                byte_count += getattr(one, "byte_count", 0)
        except StoreError as error:
            raise Failure(f"amqpgate: {address}: {error}", FAILED) from error
        done = "would go" if dry_run else "removed"
        echo(f"{address}: {count:,} objects {done}, {byte_count:,} bytes")
