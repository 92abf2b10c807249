# SPDX-License-Identifier: MIT
"""The parts of tools/bench_net, beside those that it shares with tools/bench_peers."""
