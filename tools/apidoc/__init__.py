# SPDX-License-Identifier: MIT
"""What tools/reference is made of."""
