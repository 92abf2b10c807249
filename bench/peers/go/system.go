// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func residentBytes() uint64 {
	var size, resident uint64
	statm, err := os.ReadFile("/proc/self/statm")
	expect(err == nil, "/proc/self/statm can be read")
	_, err = fmt.Sscan(string(statm), &size, &resident)
	expect(err == nil, "/proc/self/statm has two numbers")
	return resident * uint64(os.Getpagesize())
}

// User and system time of all threads.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	expect(err == nil, "getrusage")
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// Prints the context switches of all threads of process $1 in the next $2 seconds, once it has come
// to rest. A program of its own: counting keeps the runtime awake for a while.
const countSwitches = `
	count() { cat /proc/$1/task/*/status | awk '/ctxt_switches/ { n += $2 } END { print n }'; }
	sleep 0.5
	before=$(count "$1")
	sleep "$2"
	echo $(($(count "$1") - before))`

func contextSwitches(duration time.Duration) uint64 {
	pid := strconv.Itoa(os.Getpid())
	seconds := fmt.Sprint(duration.Seconds())
	printed, err := exec.Command("sh", "-c", countSwitches, "sh", pid, seconds).Output()
	expect(err == nil, "context switches can be counted")
	switches, err := strconv.ParseUint(strings.TrimSpace(string(printed)), 10, 64)
	expect(err == nil, "context switches are a number")
	return switches
}

// Lets the calling thread sleep in the kernel. The runtime does not know of it, as it would of a
// time.Sleep, and need not wake anything when the time is over.
func sleepOutside(duration time.Duration) {
	left := syscall.NsecToTimespec(duration.Nanoseconds())
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}
