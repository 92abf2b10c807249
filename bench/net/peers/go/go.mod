// SPDX-License-Identifier: MIT
// The server of `make bench-net` in Go; nothing but the standard library.

module skua-net-peer

go 1.19
