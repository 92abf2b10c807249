# SPDX-License-Identifier: MIT
"""The parts of tools/bench_peers."""
