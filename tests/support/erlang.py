"""A small Erlang node beside a RabbitMQ node, which evaluates expressions there in a millisecond.

`rabbitmqctl` does the same, and everything else, but takes half a second of processor time for every call.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence

#: Reads a line with an expression, evaluates it on the node that the command line names, writes a line.
_PROGRAM = r"""
[Node] = init:get_plain_arguments(),
io:setopts([{encoding, unicode}]),
Evaluate = fun(Text) ->
    try
        {ok, Tokens, _} = erl_scan:string(Text),
        {ok, Expressions} = erl_parse:parse_exprs(Tokens),
        {value, Value, _} = rpc:call(list_to_atom(Node), erl_eval, exprs, [Expressions, []]),
        io:format("ok ~0tp~n", [Value])
    catch Class:Reason -> io:format("error ~0tp~n", [{Class, Reason}])
    end
end,
Loop = fun Next() -> case io:get_line("") of eof -> halt(); Text -> Evaluate(Text), Next() end end,
Loop().
"""


class ErlangError(Exception):
    """The expression was not understood or failed; the text says how, in Erlang's words."""


class ErlangShell:
    """Started at the first `eval`; ends with `close`, or when this process ends."""

    def __init__(self, node: str, env: Mapping[str, str], enter: Sequence[str] = ()) -> None:
        """`node` is the name of the node that evaluates; `env` has its cookie's HOME and its name server;
        `enter` stands before the command.
        """
        self._node, self._env, self._enter = node, dict(env), enter
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def eval(self, expression: str) -> str:
        """The value of an expression (it ends with a full stop), as Erlang prints it, on one line."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = self._start()
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(expression.replace("\n", " ") + "\n")
            self._process.stdin.flush()
            word, _, rest = self._process.stdout.readline().strip().partition(" ")
        if word != "ok":
            raise ErlangError(f"{expression}: {rest or 'the shell ended'}")
        return rest

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        name = f"shell-{os.getpid()}-{self._node}"
        loopback = ["-kernel", "inet_dist_use_interface", "{127,0,0,1}"]
        # End of input ends the program, so it cannot outlive this process.
        return subprocess.Popen(
            [
                *self._enter,
                "erl",
                "-noshell",
                "-hidden",
                "-sname",
                name,
                *loopback,
                "-eval",
                _PROGRAM,
                "-extra",
                self._node,
            ],
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
