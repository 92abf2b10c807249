# SPDX-License-Identifier: MIT
"""An example that is a server, running in the background on a port of its own."""

import re
import socket
import subprocess
import sys

SECONDS = 60  # only ends a hang


class Server:
    """Runs a program until the `with` ends; `port` is where it listens."""

    def __init__(self, *command):
        self.command = command

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening at 127\.0\.0\.1:(\d+)\n", line)
        if not found:
            self.process.kill()
            sys.exit(f"{self.command[0]} does not say where it listens: {line!r}")
        self.port = int(found[1])
        return self

    def __exit__(self, *_):
        ended = self.process.poll()
        self.process.terminate()
        self.process.wait(SECONDS)
        self.process.stdout.close()
        if ended is not None:
            sys.exit(f"{self.command[0]} has ended with status {ended}")


class Client:
    """A connection that reads lines, or to the end."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self.file = self.socket.makefile("rb")

    def send(self, text):
        self.socket.sendall(text if isinstance(text, bytes) else text.encode())

    def line(self):
        return self.file.readline().decode().rstrip("\r\n")

    def exactly(self, size):
        return self.file.read(size)

    def close(self):
        self.file.close()
        self.socket.close()
