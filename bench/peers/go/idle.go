// SPDX-License-Identifier: MIT

// Workloads of what the runtime does when it has nothing to run.

package main

import (
	"math/rand"
	"runtime"
	"sort"
	"sync"
	"time"
)

// Has 64 bytes of its own and waits for messages, which never come.
func idler(started *sync.WaitGroup) {
	var state [64]byte
	for i := range state {
		state[i] = 1
	}
	mailbox := make(chan struct{})
	started.Done()
	<-mailbox
	runtime.KeepAlive(&state)
}

func startIdlers(count int) {
	var started sync.WaitGroup
	started.Add(count)
	for i := 0; i < count; i++ {
		go idler(&started)
	}
	started.Wait()
}

func idleMemory() measurement {
	before := residentBytes()
	begin := time.Now()
	startIdlers(million)
	result := finish(million, begin)
	result.BytesPerProcess = float64(result.RSSBytes-before) / million
	return result
}

const (
	idlers   = 10000
	restTime = 5 * time.Second
)

// How often anything wakes in five seconds.
func idleCPU() measurement {
	startIdlers(idlers)
	wakeups := contextSwitches(restTime)
	result := finishAfter(idlers, restTime)
	result.Wakeups = &wakeups
	return result
}

func percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[len(sorted)*percent/100]
}

func sortDurations(durations []time.Duration) {
	sort.Slice(durations, func(i, j int) bool { return durations[i] < durations[j] })
}

func microseconds(duration time.Duration) float64 {
	return float64(duration.Nanoseconds()) / 1e3
}

// A million goroutines, each asleep for its own time.
func timers() measurement {
	var asleep sync.WaitGroup
	late := make([]time.Duration, million)
	random := rand.New(rand.NewSource(1))
	cpu := cpuSeconds()
	begin := time.Now()
	asleep.Add(million)
	for i := range late {
		go func(late *time.Duration, duration time.Duration) {
			due := time.Now().Add(duration)
			time.Sleep(duration)
			*late = time.Since(due)
			asleep.Done()
		}(&late[i], time.Duration(random.Int63n(int64(time.Second))))
	}
	asleep.Wait()
	elapsed := time.Since(begin)
	result := finishAfter(million, elapsed)
	result.WallS = elapsed.Seconds()
	result.CPUS = cpuSeconds() - cpu
	sortDurations(late)
	expect(late[0] >= 0, "timers: some fired early")
	result.LateP50Us = microseconds(percentile(late, 50))
	result.LateP99Us = microseconds(percentile(late, 99))
	return result
}

const wakes = 1000

// From a send to the moment the receiver runs. The sender is locked to its thread and sleeps in the
// kernel between sends: it neither runs the receiver itself nor keeps the runtime awake.
func wake() measurement {
	runtime.LockOSThread()
	mailbox := make(chan time.Time)
	waits := make([]time.Duration, 0, wakes)
	var received sync.WaitGroup
	received.Add(1)
	go func() {
		for sent := range mailbox {
			waits = append(waits, time.Since(sent))
		}
		received.Done()
	}()
	for i := 0; i < wakes; i++ {
		sleepOutside(time.Millisecond)
		mailbox <- time.Now()
	}
	close(mailbox)
	received.Wait()
	expect(len(waits) == wakes, "wake: how many messages have come")
	sortDurations(waits)
	p50 := percentile(waits, 50)
	result := finishAfter(wakes, p50*wakes)
	result.P50Us = microseconds(p50)
	result.P99Us = microseconds(percentile(waits, 99))
	return result
}
