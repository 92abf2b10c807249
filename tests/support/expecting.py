# SPDX-License-Identifier: MIT
"""How a test program in Python fails."""

import os
import sys


def expect(holds, *what):
    if not holds:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(map(str, what))}")
