// SPDX-License-Identifier: MIT

// The workloads of `skua bench` in Go, with the same parameters and the same checks.
//
// A goroutine stands for a process, a channel for its mailbox. One run of the program is one run of
// one workload:
//
//	run --list
//	run WORKLOAD WORKERS
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
)

const million = 1000000

// Garbage is collected when the heap is five times what was in use; by default it is twice that.
// Who has the memory gives it: trees, calls and timers gained by this, trees still more by none.
const heapGrowth = 400

// What one run has to say, as it is printed.
type measurement struct {
	Workload        string  `json:"workload"`
	Workers         int     `json:"workers"`
	Ops             int     `json:"ops"`
	NsPerOp         float64 `json:"ns_per_op"`
	RSSBytes        uint64  `json:"rss_bytes"`
	BytesPerProcess float64 `json:"bytes_per_process,omitempty"`
	WallS           float64 `json:"wall_s,omitempty"`
	CPUS            float64 `json:"cpu_s,omitempty"`
	LateP50Us       float64 `json:"late_p50_us,omitempty"`
	LateP99Us       float64 `json:"late_p99_us,omitempty"`
	P50Us           float64 `json:"p50_us,omitempty"`
	P99Us           float64 `json:"p99_us,omitempty"`
	Wakeups         *uint64 `json:"wakeups,omitempty"` // a pointer: 0 is worth printing
	P50Ms           float64 `json:"p50_ms,omitempty"`
	P99Ms           float64 `json:"p99_ms,omitempty"`
	MaxMs           float64 `json:"max_ms,omitempty"`
	*beatSteps
}

var workloads = []struct {
	name string
	run  func() measurement
}{
	{"spawn", spawn},
	{"submit", submit},
	{"pingpong", pingpong},
	{"pairs", pairs},
	{"ring", func() measurement { return ring(1) }},
	{"ring100", func() measurement { return ring(100) }},
	{"fanin", fanin},
	{"fanout", fanout},
	{"skynet", skynet},
	{"fib", fib},
	{"skynet-inline", skynetInline},
	{"fib-inline", fibInline},
	{"steal", steal},
	{"yield", yield},
	{"call", call},
	{"call-timeout", callTimeout},
	{"publish", publish},
	{"name-find", nameFind},
	// A goroutine is a task already.
	{"task-pingpong", pingpong},
	{"task-spawn", spawn},
	{"task-memory", idleMemory},
	{"idle-memory", idleMemory},
	{"idle-cpu", idleCPU},
	{"timers", timers},
	{"wake", wake},
	{"heartbeat-4x5ms", func() measurement { return heartbeat(4, 5*time.Millisecond) }},
	{"heartbeat-50x1ms", func() measurement { return heartbeat(50, time.Millisecond) }},
	{"heartbeat-500x0.1ms", func() measurement { return heartbeat(500, time.Millisecond/10) }},
	{"child-latency", childLatency},
	{"stop", stop},
}

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "--list":
		for _, workload := range workloads {
			fmt.Println(workload.name)
		}
	case len(os.Args) == 3:
		measure(os.Args[1], os.Args[2])
	default:
		refuse("usage: run --list | run WORKLOAD WORKERS")
	}
}

func measure(name, count string) {
	workers, err := strconv.Atoi(count)
	if err != nil || workers < 1 {
		refuse("WORKERS is a number from 1")
	}
	for _, workload := range workloads {
		if workload.name == name {
			runtime.GOMAXPROCS(workers)
			debug.SetGCPercent(heapGrowth)
			result := workload.run()
			result.Workload = name
			result.Workers = workers
			report(result)
			return
		}
	}
	refuse("there is no workload " + name)
}

func report(result measurement) {
	err := json.NewEncoder(os.Stdout).Encode(result)
	expect(err == nil, "the result can be printed")
}

func refuse(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(2)
}

// Ends the program with a message unless the result is right.
func expect(right bool, what string) {
	if !right {
		fmt.Fprintln(os.Stderr, "wrong result:", what)
		os.Exit(1)
	}
}

// The measurement of so many operations since `begin`.
func finish(ops int, begin time.Time) measurement {
	return finishAfter(ops, time.Since(begin))
}

func finishAfter(ops int, elapsed time.Duration) measurement {
	return measurement{
		Ops:      ops,
		NsPerOp:  float64(elapsed.Nanoseconds()) / float64(ops),
		RSSBytes: residentBytes(),
	}
}
