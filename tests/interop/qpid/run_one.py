# ruff: noqa: E402, RUF012, UP010, UP031
"""Qpid's conformance tests, for Python 2.7 and the unpacked source distribution of qpid-python.

run_one.py SOURCE                                       prints the name of each test
run_one.py SOURCE SPECIFICATION PORT VHOST NAME         runs one; prints [outcome, why not passed]

Whoever runs it sets a time limit: a client that waits for an answer waits for ever.
"""

from __future__ import print_function

import importlib
import json
import os
import pkgutil
import sys
import types
import unittest

SOURCE = sys.argv[1]
PACKAGES = ("broker_0_8", "broker_0_9")
sys.path.insert(0, SOURCE)

# The library of its tests imports what only those of later versions use.
for name in ("qmf", "qmf.console", "qpidtoollibs"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["qmf"].console = sys.modules["qmf.console"]
sys.modules["qpidtoollibs"].BrokerAgent = None
# Without its own __init__, which imports the tests of all versions.
sys.modules["qpid_tests"] = types.ModuleType("qpid_tests")
sys.modules["qpid_tests"].__path__ = [os.path.join(SOURCE, "qpid_tests")]

import qpid.client
import qpid.specs_config
from qpid.harness import Skipped


def suites():
    for package in PACKAGES:
        folder = os.path.join(SOURCE, "qpid_tests", package)
        for _, module, _ in pkgutil.iter_modules([folder]):
            loaded = importlib.import_module("qpid_tests.%s.%s" % (package, module))
            for suite in unittest.defaultTestLoader.loadTestsFromModule(loaded):
                for test in suite:
                    yield ".".join((package, module, type(test).__name__, test._testMethodName)), test


class Config:
    """What the tests read of it."""

    class broker:
        host = user = password = port = None

    defines = {}


def run(test, specification, port, vhost):
    """Outcome, and why it is not passed."""
    # What a Client reads that is not told.
    qpid.specs_config.amqp_spec_0_9 = os.path.join(SOURCE, "qpid", "specs", specification)
    made = qpid.client.Client.__init__

    def make(self, host, port, spec=None, _vhost=None):
        made(self, host, port, spec, vhost)

    qpid.client.Client.__init__ = make
    Config.broker.host, Config.broker.port = "127.0.0.1", int(port)
    test.configure(Config)
    result = unittest.TestResult()
    skipped = []
    method = getattr(test, test._testMethodName)

    def attempt():
        try:
            method()
        except Skipped as why:
            skipped.append(str(why))

    setattr(test, test._testMethodName, attempt)
    test.run(result)
    problems = result.failures + result.errors
    if problems:
        return "failed", problems[0][1].strip().splitlines()[-1]
    return ("skipped", skipped[0]) if skipped else ("passed", "")


if len(sys.argv) == 2:
    for name, _ in suites():
        print(name)
else:
    outcome = run(dict(suites())[sys.argv[5]], *sys.argv[2:5])
    print("\n" + json.dumps(outcome))
    sys.stdout.flush()
    # Its threads may wait for a connection that is gone.
    os._exit(0)
