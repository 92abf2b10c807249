# SPDX-License-Identifier: MIT
"""Counts the system calls that a server makes while its clients run: by perf, which hardly slows it
down, or else by strace, under which a server that goes by the clock polls more often."""

import re
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from peers.contenders import Trouble
from peers.measure import run_program

ALL = "raw_syscalls:sys_enter"
NAMED = "syscalls:sys_enter_"
NAMES = ("accept4", "clock_nanosleep", "close", "epoll_ctl", "epoll_pwait", "epoll_pwait2",
         "epoll_wait", "futex", "nanosleep", "read", "readv", "recvfrom", "recvmsg", "sched_yield",
         "sendmsg", "sendto", "setsockopt", "write", "writev")
STRACE_SECONDS = 20
TOTAL = "total"


def perf_command(path, *target):
    events = ",".join([ALL, *(NAMED + name for name in NAMES)])
    return ["perf", "stat", "-x", ",", "-o", path, "-e", events, *target]


@cache
def perf_can_count():
    try:
        return subprocess.run(perf_command("/dev/null", "true"), capture_output=True,
                              check=False).returncode == 0
    except OSError:
        return False


def calls_of_perf(text):
    """How often each call was made, by name, and all together."""
    lines = re.findall(rf"^(\d+),[^,]*,(?:{ALL}|{NAMED}(\w+)),", text, re.MULTILINE)
    return {name or TOTAL: int(count) for count, name in lines}


def calls_of_strace(text):
    """The same of the table of `strace -c`."""
    lines = re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+)(?: +\d+)? +(\w+)$", text, re.MULTILINE)
    return {name: int(count) for count, name in lines}


def run_under_strace(argv, pid, path, seconds, prepare):
    with subprocess.Popen(["strace", "-f", "-c", "-o", path, "-p", str(pid)],
                          stderr=subprocess.PIPE, text=True) as strace:
        try:
            line = strace.stderr.readline()
            if "attached" not in line:
                raise Trouble(f"cannot be traced: {line.strip()}")
            return run_program(argv, seconds, prepare)
        finally:
            if strace.poll() is None:
                strace.send_signal(signal.SIGINT)
            strace.communicate(timeout=STRACE_SECONDS)


def run_counted(argv, pid, seconds, prepare):
    """What a program prints, and the calls that a process makes meanwhile."""
    with tempfile.TemporaryDirectory(prefix="skua-") as folder:
        path = Path(folder) / "calls"
        if perf_can_count():
            out = run_program([*perf_command(path, "-p", str(pid), "--"), *argv], seconds, prepare)
            return out, calls_of_perf(path.read_text())
        out = run_under_strace(argv, pid, path, seconds, prepare)
        return out, calls_of_strace(path.read_text())


def per_operation(calls, operations):
    """What a run says of its calls; those that are rare are part of the sum only."""
    each = {name: count / operations for name, count in calls.items()}
    return {"calls": each.get(TOTAL, 0), "counted_by": "perf" if perf_can_count() else "strace",
            "by_name": {name: round(count, 3) for name, count in sorted(each.items())
                        if name != TOTAL and count >= 0.005}}
