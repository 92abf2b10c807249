# SPDX-License-Identifier: MIT
"""Those that are measured: Skua, and each peer of bench/peers once it is installed and built.

A peer is a folder with
  packages  its first line lists the Debian packages that it needs
  build     a program that builds into the folder it is given, where it leaves the program `run`
  version   a program that prints one line: versions, flags
`run --list` prints the workloads it has, `run WORKLOAD WORKERS` runs one once and prints a JSON
object with its figures."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from peers.machine import first_line, first_match
from peers.workloads import SKUA, WORKLOADS

BUILD_SECONDS = 1800


class Trouble(Exception):
    """A word on why something cannot be had or measured."""


@dataclass
class Contender:
    name: str
    version: str
    workloads: set[str]
    program: Path

    def command(self, workload, workers):
        if self.name == SKUA:
            return [self.program, "bench", WORKLOADS[workload].skua_name, "--workers", str(workers),
                    "--runs", "1", "--json"]
        return [self.program, workload, str(workers)]


def find_peers(folder):
    return sorted(path.name for path in folder.glob("*") if (path / "build").exists())


def listed(argv):
    """The words that a command prints."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise Trouble("does not list its workloads") from error
    return set(done.stdout.split())


def run_logged(argv, log, what):
    """Runs a command that must succeed; its output goes to the end of the log."""
    with log.open("a") as out:
        try:
            subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                           timeout=BUILD_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            print(error, file=out)
            raise Trouble(what) from error


def build_peer(source, output, bootstrap, log):
    """Installs what the peer needs and builds it; returns its program."""
    output.mkdir(parents=True, exist_ok=True)
    packages = first_match(r"\A(.*)", source / "packages", "").split()
    run_logged([bootstrap, "packages", *packages], log, "cannot be installed")
    run_logged([source / "build", output], log, "cannot be built")
    program = output / "run"
    if not program.exists():
        raise Trouble("cannot be built: no program is left behind")
    return program


def version_of(source):
    return first_line([source / "version"]) or "unknown"


def prepare_peer(source, output, bootstrap, log):
    program = build_peer(source, output, bootstrap, log)
    return Contender(name=source.name, version=version_of(source),
                     workloads=listed([program, "--list"]), program=program)


def prepare_skua(program):
    if not program.exists():
        raise Trouble(f"{program} is missing: make build-release")
    return Contender(name=SKUA, version="", workloads=set(WORKLOADS), program=program)
