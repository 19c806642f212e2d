"""Run one command as a container's first process: ``jail.py ROOT MOUNT... -- COMMAND``.

To be started by ``unshare --mount --pid --fork``. ROOT becomes the root file system, read-only; each MOUNT is
``FROM:TO``, a file or folder that is seen there, read-only too, or ``FROM:TO:rw``. The process is
10001:10001, without capabilities and without a way to get any, and number 1.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys

PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
LAST_CAPABILITY = 63
USER = 10001


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def main() -> None:
    root, *rest = sys.argv[1:]
    at = rest.index("--")
    mounts, command = rest[:at], rest[at + 1 :]
    mount("--make-rprivate", "/")
    mount("--bind", root, root)
    for entry in mounts:
        source, target, *options = entry.split(":")
        target = root + target
        mount("--bind", source, target)
        if options != ["rw"]:
            mount("-o", "remount,bind,ro", target)
    mount("-t", "proc", "proc", f"{root}/proc")
    mount("-t", "tmpfs", "tmpfs", f"{root}/dev")
    for name, minor in (("null", 3), ("urandom", 9)):
        os.mknod(f"{root}/dev/{name}", 0o20666, os.makedev(1, minor))
        os.chmod(f"{root}/dev/{name}", 0o666)
    # As every container has them; bash's <(...) reads from there.
    os.symlink("/proc/self/fd", f"{root}/dev/fd")
    mount("-o", "remount,ro", f"{root}/dev")
    mount("-o", "remount,bind,ro", root)
    environ = json.loads(os.environ["JAIL_ENVIRON"])
    os.chroot(root)
    os.chdir("/")
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for capability in range(LAST_CAPABILITY + 1):
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)
    os.execvpe(command[0], command, environ)


if __name__ == "__main__":
    main()
