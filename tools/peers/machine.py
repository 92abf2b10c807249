# SPDX-License-Identifier: MIT
"""The machine and the build that figures come from."""

import os
import re
import subprocess
from pathlib import Path

GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
BUSY = 0.5  # load average


def first_match(pattern, path, otherwise="unknown"):
    try:
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return otherwise
    return found[1] if found else otherwise


def first_line(argv, directory=None):
    """The first line that a command prints; empty if it fails."""
    try:
        done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""


def describe_machine():
    kibibytes = int(first_match(r"^MemTotal:\s+(\d+)", "/proc/meminfo", "0"))
    return {"cpu": first_match(r"^model name\s*: (.*)", "/proc/cpuinfo"),
            "cores": len(os.sched_getaffinity(0)),
            "kernel": f"{os.uname().sysname} {os.uname().release}",
            "memory_gib": round(kibibytes / 2**20, 1),
            "governor": first_match(r"(\S+)", GOVERNOR)}


def describe_build(build):
    """The compiler and its flags, as CMake has written them down."""
    cache = build / "CMakeCache.txt"
    compiler = first_match(r"^CMAKE_C_COMPILER:\w+=(.*)", cache, "cc")
    flags = [first_match(rf"^{name}:\w+=(.*)", cache, "")
             for name in ("CMAKE_C_FLAGS", "CMAKE_C_FLAGS_RELEASE")]
    return {"compiler": first_line([compiler, "--version"]) or "unknown",
            "flags": " ".join(filter(None, flags))}


def describe_commit(root):
    commit = first_line(["git", "rev-parse", "--short=12", "HEAD"], root) or "unknown"
    changed = first_line(["git", "status", "--porcelain", "--untracked-files=no"], root)
    return commit + (" and changes" if changed else "")


def load_average():
    return float(first_match(r"^(\S+)", "/proc/loadavg", "0"))
