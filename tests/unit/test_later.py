"""Modules that are loaded when they are first asked something, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def told(script: str) -> str:
    """What a new process prints."""
    command = [sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_module_is_loaded_with_the_first_name_that_is_looked_up() -> None:
    assert told(
        """
        import sys
        from amqpgate.later import later
        later("ssl", "hashlib")
        import ssl
        before = "_ssl" in sys.modules
        print(before, ssl.SSLContext.__module__, "_ssl" in sys.modules, "_hashlib" in sys.modules)
        first = ssl
        del ssl
        import ssl
        print(first is ssl, first.SSLSocket is ssl.SSLSocket, "SSLSocket" in vars(first))
        """
    ).split("\n")[:2] == ["False ssl True False", "False True True"]


def test_what_is_loaded_stays_and_what_there_is_not_is_not_found() -> None:
    assert (
        told(
            """
        import json
        from amqpgate.later import later
        later("json", "csv")
        import csv
        print(json.dumps([1]), type(csv).__name__, hasattr(csv, "nothing"), csv.reader is not None)
        """
        )
        == "[1] _StandIn False True\n"
    )


def test_numbers_nobody_guesses_need_no_openssl() -> None:
    assert (
        told(
            """
        import sys
        from amqpgate.later import OF_OPENSSL, later
        later(*OF_OPENSSL)
        import secrets
        print(len(secrets.token_hex(8)), secrets.compare_digest(b"a", b"a"), "_hashlib" in sys.modules)
        import hmac
        print(hmac.new(b"k", b"m", "sha256").hexdigest()[:8])
        """
        )
        == "16 True False\nb60090e3\n"
    )


def test_threads_that_ask_at_once_all_get_it() -> None:
    assert (
        told(
            """
        import threading
        from amqpgate.later import later
        later("ssl")
        import ssl
        found, go = [], threading.Barrier(8)

        def ask():
            go.wait()
            found.append(ssl.SSLContext)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(found), len(set(found)))
        """
        )
        == "8 1\n"
    )


def test_metrics_are_written_without_servers_of_http() -> None:
    assert (
        told(
            """
        import sys
        from amqpgate.telemetry.prometheus import LEFT_OUT, import_prometheus
        import_prometheus()
        from prometheus_client import CollectorRegistry, Counter, generate_latest
        registry = CollectorRegistry()
        Counter("passed", "Messages.", registry=registry).inc(3)
        print("passed_total 3.0" in generate_latest(registry).decode())
        print([name for name in LEFT_OUT if name in sys.modules])
        import urllib.request
        print(urllib.request.Request("http://x/").host)
        """
        )
        == "True\n[]\nx\n"
    )


def test_digests_are_those_of_hashlib() -> None:
    import hashlib

    from amqpgate.digests import blake2b, sha256

    digest = sha256(b"a")
    digest.update(b"b")
    assert digest.hexdigest() == hashlib.sha256(b"ab").hexdigest()
    assert blake2b(b"ab", digest_size=8).digest() == hashlib.blake2b(b"ab", digest_size=8).digest()
