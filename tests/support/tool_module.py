# SPDX-License-Identifier: MIT
"""For the tests of tools/: a tool as a module, and the tables that tools print."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path


def load_tool(folder, name):
    """The tool with that name; the modules that tools share can be imported afterwards."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    loader = importlib.machinery.SourceFileLoader(f"{name}_tool", str(Path(folder) / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module  # dataclasses look there
    loader.exec_module(module)
    return module


def cells(text):
    """The first table without its padding and its line of dashes."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines() if line.startswith("|")]
    return [rows[0], *rows[2:]]
