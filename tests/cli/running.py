# SPDX-License-Identifier: MIT
"""`skua run` of the modules of tests/cli/modules, for tests that are called with the command and the
folder of the modules."""

import atexit
import os
import signal
import subprocess
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from expecting import expect

SKUA, MODULES = map(os.path.abspath, sys.argv[1:3])


def module(name):
    return os.path.join(MODULES, name + ".so")


def run(*arguments, **options):
    """Runs a module, by its name, or whatever the arguments say."""
    words = [module(word) if i == 0 and not word.startswith(("-", ".", "/")) else word
             for i, word in enumerate(arguments)]
    return subprocess.run([SKUA, "run", *words], capture_output=True, text=True, check=False,
                          timeout=120, **options)


def expect_run(arguments, stdout, status=0, stderr=""):
    done = run(*arguments)
    expect(done.returncode == status, arguments, "has status", done.returncode, done.stderr)
    expect(done.stdout == stdout, arguments, "prints", repr(done.stdout))
    expect(done.stderr == stderr, arguments, "says", repr(done.stderr))


def expect_refusal(arguments, status, *words):
    done = run(*arguments)
    expect(done.returncode == status, arguments, "has status", done.returncode, done.stderr)
    expect(done.stdout == "", arguments, "prints", done.stdout)
    expect(done.stderr.startswith("skua run: ") and done.stderr.count("\n") == 1,
           arguments, "is not refused in one line:", done.stderr)
    expect(all(word in done.stderr for word in words), arguments, "says", done.stderr)


class Running:
    """A module that runs, with what it prints as it comes. One that will be ended at once leaves
    its threads, which the thread sanitizer is not to complain of."""

    def __init__(self, *arguments, stderr=subprocess.PIPE, ends_at_once=False):
        sanitizer = os.environ.get("TSAN_OPTIONS", "")
        if ends_at_once:
            sanitizer += ":report_thread_leaks=0"
        self.process = subprocess.Popen(
            [SKUA, "run", module(arguments[0]), *arguments[1:]], stdout=subprocess.PIPE,
            stderr=stderr, text=True, env=os.environ | {"TSAN_OPTIONS": sanitizer})
        atexit.register(self.process.kill)  # if the test fails; otherwise it has ended
        self.arguments = arguments

    def wait_for(self, line, stream="stdout", times=1):
        while times > 0:
            got = getattr(self.process, stream).readline()
            expect(got != "", self.arguments, "ends before it says", line)
            times -= line in got

    def send(self, number=signal.SIGINT):
        self.process.send_signal(number)

    def end(self, status):
        stdout, stderr = self.process.communicate(timeout=120)
        expect(self.process.returncode == status, self.arguments, "has status",
               self.process.returncode, stderr)
        return stdout, stderr
