// SPDX-License-Identifier: MIT

// Stopping everything while threads of the same program keep all CPUs busy.

package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	stops        = 50
	resting      = 1000
	settleTime   = 2 * time.Millisecond
	spinnerTurns = 1000
)

// Go knows no thread that is wholly outside: a goroutine locked to its thread, which runs nothing
// else, is what comes closest. Each has one place more to run, so that the others keep theirs.
func startSpinners(over *int32) {
	count := runtime.NumCPU()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + count)
	for i := 0; i < count; i++ {
		go func() {
			runtime.LockOSThread()
			for atomic.LoadInt32(over) == 0 {
				compute(spinnerTurns)
			}
		}()
	}
}

// A program in Go does not stop its runtime, but all that it has started: it cancels their context
// and waits for them. No thread ends with that.
func stopOne() time.Duration {
	var started, alive sync.WaitGroup
	scope, cancel := context.WithCancel(context.Background())
	started.Add(resting)
	alive.Add(resting)
	for i := 0; i < resting; i++ {
		go func() {
			started.Done()
			<-scope.Done()
			alive.Done()
		}()
	}
	started.Wait()
	time.Sleep(settleTime)
	begin := time.Now()
	cancel()
	alive.Wait()
	return time.Since(begin)
}

func stop() measurement {
	var over int32
	startSpinners(&over)
	times := make([]time.Duration, stops)
	for i := range times {
		times[i] = stopOne()
	}
	atomic.StoreInt32(&over, 1)
	sortDurations(times)
	p50 := percentile(times, 50)
	result := finishAfter(stops, p50*stops)
	result.P50Ms = milliseconds(p50)
	result.MaxMs = milliseconds(times[stops-1])
	return result
}
