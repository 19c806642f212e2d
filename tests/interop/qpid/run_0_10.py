# ruff: noqa: E402, RUF012, UP010, UP031
"""Qpid's conformance tests of AMQP 0-10, for Python 2.7 and two unpacked source distributions.

run_0_10.py QPID_PYTHON QPID_TOOLS                      prints the name of each test
run_0_10.py QPID_PYTHON QPID_TOOLS PORT VHOST NAME...   runs them; prints a line for each:
                                                        [outcome, why not passed, traceback]

They are those of a broker (`qpid_tests.broker_0_10`), and of the messaging API those that talk to one
(`qpid.tests.messaging`). Whoever runs it sets a time limit.
"""

from __future__ import print_function

import importlib
import json
import logging
import os
import sys
import traceback
import types

QPID, TOOLS = sys.argv[1:3]
sys.path[:0] = [QPID, os.path.join(TOOLS, "lib")]
# Without its own __init__, which imports the tests of all versions.
sys.modules["qpid_tests"] = types.ModuleType("qpid_tests")
sys.modules["qpid_tests"].__path__ = [os.path.join(QPID, "qpid_tests")]

from qpid.harness import Skipped
from qpid.util import URL
from vhost_0_10 import choose_vhost

PACKAGES = ("qpid_tests.broker_0_10", "qpid.tests.messaging")


def classes():
    """The tests' classes by name, as Qpid's own runner finds them."""
    found = {}
    for package in PACKAGES:
        modules = [importlib.import_module(package)]
        for module in modules:
            for name, value in sorted(vars(module).items()):
                if isinstance(value, types.ModuleType) and value.__name__.startswith(package + "."):
                    modules += [value] if value not in modules else []
                elif isinstance(value, (type, types.ClassType)) and name.endswith(("Test", "Tests")):
                    # Others need no broker.
                    if not (hasattr(value, "setUp") or hasattr(value, "setup")):
                        continue
                    found[value.__module__.split("tests.", 1)[1] + "." + name] = value
    return found


def names():
    for prefix, cls in sorted(classes().items()):
        for name in dir(cls):
            if name.startswith("test") and isinstance(getattr(cls, name), types.MethodType):
                yield "%s.%s" % (prefix, name)


class Config:
    """What the tests read of it."""

    defines = {}


def run(port, name):
    """Outcome, why it is not passed, and where."""
    logging.disable(logging.CRITICAL)
    Config.broker = URL("guest/guest@127.0.0.1:%s" % port)
    prefix, method = name.rsplit(".", 1)
    cls = classes()[prefix]
    test = cls(method)
    if hasattr(test, "configure"):
        test.configure(Config)
    phases = ["setUp", method, "tearDown"] if hasattr(test, "setUp") else ["setup", method, "teardown"]
    outcome = ("passed", "", "")
    for phase in phases:
        try:
            getattr(test, phase)()
        except Exception as error:
            if outcome[0] == "passed":
                kind = "skipped" if isinstance(error, Skipped) else "failed"
                trace = traceback.format_exc()
                outcome = (kind, trace.strip().splitlines()[-1], trace)
            if phase == phases[0]:
                break
    return outcome


if len(sys.argv) == 3:
    for name in names():
        print(name)
else:
    choose_vhost(sys.argv[4])
    for name in sys.argv[5:]:
        print("\n" + json.dumps(run(sys.argv[3], name)))
        sys.stdout.flush()
    # Their threads may wait for a connection that is gone.
    os._exit(0)
