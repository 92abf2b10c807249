// SPDX-License-Identifier: MIT
// The workloads of `skua bench` in Go; nothing but the standard library.

module skua-peer

go 1.19
