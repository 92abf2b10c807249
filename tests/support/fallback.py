# SPDX-License-Identifier: MIT
"""The folder where programs without a runtime directory have their sockets. Clients look into it,
too, and would find programs there that have nothing to do with a test."""

import ctypes
import os
import subprocess

FALLBACK = f"/tmp/skua-{os.geteuid()}"
CLONE_NEWNS = 0x00020000


def mount(*arguments):
    return subprocess.run(["mount", *arguments], check=False).returncode == 0


def hide_others():
    """For root, where the system allows it: replaces the folder by an empty one that only this test
    and its children see. Returns whether it is empty."""
    if os.geteuid() == 0 and ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0:
        os.makedirs(FALLBACK, mode=0o700, exist_ok=True)
        if mount("--make-rprivate", "/"):
            mount("-t", "tmpfs", "-o", "mode=0700", "none", FALLBACK)
    return not os.path.isdir(FALLBACK) or not os.listdir(FALLBACK)
