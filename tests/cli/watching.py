# SPDX-License-Identifier: MIT
"""What the tests of `skua ps`, `top`, `stat`, `info`, `trace` and `metrics` share: programs to look
at, servers that only pretend to be one, and terminals. The first two arguments of a test are the
command and the folder of the modules; it gets a runtime directory of its own."""

import atexit
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from expecting import expect
from fallback import hide_others

SKUA, MODULES = map(os.path.abspath, sys.argv[1:3])
FOLDER = tempfile.mkdtemp(prefix="skua-test-")
SOCKETS = os.path.join(FOLDER, "skua")
TIME_LIMIT = 120  # only ends a hang
HAS_FALLBACK = hide_others()

atexit.register(shutil.rmtree, FOLDER)
os.environ["XDG_RUNTIME_DIR"] = FOLDER
os.environ.pop("SKUA_INSPECT", None)


def skua(*arguments):
    return subprocess.run([SKUA, *arguments], capture_output=True, text=True, check=False,
                          timeout=TIME_LIMIT)


def succeed(*arguments, stderr=""):
    """Runs a command that has to work; returns its lines."""
    done = skua(*arguments)
    expect(done.returncode == 0, arguments, "has status", done.returncode, done.stderr)
    expect(stderr is None or done.stderr == stderr, arguments, "says", done.stderr)
    return done.stdout.splitlines()


def refuse(status, *arguments, words=()):
    """Runs a command that has to fail, with one line that says why."""
    done = skua(*arguments)
    expect(done.returncode == status, arguments, "has status", done.returncode, done.stderr)
    expect(done.stderr.startswith(f"skua {arguments[0]}: ") and done.stderr.count("\n") == 1 and
           done.stderr.endswith("\n"), arguments, "is not refused in one line:", repr(done.stderr))
    expect(re.search(r"[^\n -~]", done.stderr) is None, "not printable:", repr(done.stderr))
    expect(all(word in done.stderr for word in words), arguments, "says", done.stderr)
    return done


def wait_until(is_so, *what):
    """Asks again and again until something is so."""
    end = time.monotonic() + TIME_LIMIT
    while not is_so():
        expect(time.monotonic() < end, "it is never so that", *what)


class Program:
    """The module `busy`, or another, with one of its methods, until the end of a `with`."""

    def __init__(self, method, *arguments, module="busy", **environment):
        self.process = subprocess.Popen(
            [SKUA, "run", os.path.join(MODULES, module + ".so"), "--method", method, "--workers",
             "2", "--", *arguments], stdout=subprocess.PIPE, text=True,
            env=os.environ | environment)
        self.pid = str(self.process.pid)
        ready = self.process.stdout.readline().split()
        expect(len(ready) == 2 and ready[0] == "ready", "the program says", ready)
        self.child = ready[1]  # a PID

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=TIME_LIMIT)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Terminal:
    """A command on a terminal of its own. All that it prints there is in `seen`."""

    def __init__(self, *arguments, rows=24, columns=100, **environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(environment)
            # The size is there before the command looks.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execv(SKUA, [SKUA, *arguments])
        self.arguments = arguments
        self.seen = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        """Reads more; false at the end."""
        if not select.select([self.fd], [], [], TIME_LIMIT)[0]:
            return False
        try:
            more = os.read(self.fd, 1 << 16)
        except OSError:  # Linux' way to say that nobody has the terminal open any more
            more = b""
        self.seen += more
        return more != b""

    def wait_for(self, pattern):
        """Waits until something is printed after this call."""
        begin = len(self.seen)
        while re.search(pattern, self.seen[begin:]) is None:
            expect(self.read(), self.arguments, "never prints", pattern, self.seen[begin:][-500:])

    def press(self, keys):
        os.write(self.fd, keys)

    def kill(self, number):
        os.kill(self.pid, number)

    def end(self):
        """Waits for the end; returns the exit status."""
        while self.read():
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


HELLO = f"program\t{os.getpid()}\t1\tpretender\t0.2.0\t1000\nend\n".encode()


class Server:
    """A socket where a program's would be. `answer` gets each request, and returns what to send, or
    None to close the connection; an iterator is sent piece by piece."""

    def __init__(self, answer):
        os.makedirs(SOCKETS, mode=0o700, exist_ok=True)
        self.path = os.path.join(SOCKETS, f"{os.getpid()}.1")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.answer = answer
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, connection.makefile("r") as requests:
            try:
                for request in requests:
                    answer = self.answer(request.strip())
                    if answer is None:
                        return
                    for piece in [answer] if isinstance(answer, bytes) else answer:
                        connection.sendall(piece)
            except OSError:
                pass  # the client has had enough

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)
