// SPDX-License-Identifier: MIT

// Workloads of goroutines that compute, and of what has to run beside them.

package main

import (
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// ---- fixed work ----

// Xorshift: never 0, and no compiler can foresee where it ends.
//
//go:noinline
func compute(turns int) {
	value := uint64(turns) | 1
	for i := 0; i < turns; i++ {
		value ^= value << 13
		value ^= value >> 7
		value ^= value << 17
	}
	expect(value != 0, "what was computed")
}

const (
	trials     = 1000 // short ones: some are not interrupted, even on a busy machine
	trialTurns = 100000
)

// How many turns take so long on a CPU that has nothing else to do, by the fastest of all trials.
func turnsOf(duration time.Duration) int {
	fastest := time.Hour
	for i := 0; i < trials; i++ {
		begin := time.Now()
		compute(trialTurns)
		if elapsed := time.Since(begin); elapsed < fastest {
			fastest = elapsed
		}
	}
	return int(duration) * trialTurns / int(fastest)
}

func milliseconds(duration time.Duration) float64 {
	return duration.Seconds() * 1e3
}

// ---- heartbeat: a goroutine beats a thousand times a second beside others that compute ----

const (
	period    = time.Millisecond
	beats     = 2000
	warmTime  = 100 * time.Millisecond
	aloneTime = 500 * time.Millisecond // before the heartbeat, and again after it
)

// What a heartbeat has to say beside its lateness.
type beatSteps struct {
	P999Ms          float64 `json:"p999_ms"`
	StepsBetweenP50 int64   `json:"steps_between_p50"`
	StepsBetweenP99 int64   `json:"steps_between_p99"`
	StepsPerSecond  float64 `json:"steps_per_second"`
	ThroughputShare float64 `json:"throughput_share"`
}

// How many steps there were in a time.
type phase struct {
	steps   int64
	elapsed time.Duration
}

func (phase phase) perSecond() float64 {
	return float64(phase.steps) / phase.elapsed.Seconds()
}

// All steps that have been completed. A step takes at least 0.1 ms: adding to it costs nothing.
var steps int64

// Gives way after each step. Go would take its thread away after 10 ms, too, but only then look for
// timers that are due: without this the heartbeat is several times as late.
func crunch(turns int, over *int32, alive *sync.WaitGroup) {
	for atomic.LoadInt32(over) == 0 {
		compute(turns)
		atomic.AddInt64(&steps, 1)
		runtime.Gosched()
	}
	alive.Done()
}

func watchAlone() phase {
	before := atomic.LoadInt64(&steps)
	begin := time.Now()
	time.Sleep(aloneTime)
	return phase{atomic.LoadInt64(&steps) - before, time.Since(begin)}
}

// Returns how late each beat was, how many steps there were between two, and the steps beside it.
// Beats that are missed altogether are left out: the next one is that after now.
func beat() (late []time.Duration, between []int64, beside phase) {
	late = make([]time.Duration, 0, beats)
	between = make([]int64, 0, beats)
	begin, now := time.Now(), time.Duration(0)
	first := atomic.LoadInt64(&steps)
	before := first
	for next := 1; next <= beats; next = int(now/period) + 1 {
		due := time.Duration(next) * period
		time.Sleep(due - time.Since(begin))
		now = time.Since(begin)
		done := atomic.LoadInt64(&steps)
		late = append(late, now-due)
		between = append(between, done-before)
		before = done
	}
	return late, between, phase{before - first, now}
}

func heartbeat(crunchers int, step time.Duration) measurement {
	var over int32
	var alive sync.WaitGroup
	turns := turnsOf(step)
	alive.Add(crunchers)
	for i := 0; i < crunchers; i++ {
		go crunch(turns, &over, &alive)
	}
	time.Sleep(warmTime)
	first := watchAlone()
	late, between, beside := beat()
	second := watchAlone()
	atomic.StoreInt32(&over, 1)
	alive.Wait()
	sortDurations(late)
	sort.Slice(between, func(i, j int) bool { return between[i] < between[j] })
	expect(late[0] >= 0, "heartbeat: one is early")
	alone := phase{first.steps + second.steps, first.elapsed + second.elapsed}
	p99 := percentile(late, 99)
	result := finishAfter(len(late), p99*time.Duration(len(late)))
	result.P50Ms = milliseconds(percentile(late, 50))
	result.P99Ms = milliseconds(p99)
	result.beatSteps = &beatSteps{
		P999Ms:          milliseconds(late[len(late)*999/1000]),
		StepsBetweenP50: between[len(between)*50/100],
		StepsBetweenP99: between[len(between)*99/100],
		StepsPerSecond:  beside.perSecond(),
		ThroughputShare: beside.perSecond() / alone.perSecond(),
	}
	return result
}

// ---- child-latency: a goroutine starts another and computes on ----

const (
	children    = 500
	computeTime = 2 * time.Millisecond
	pauseTime   = time.Millisecond
)

func childLatency() measurement {
	turns := turnsOf(computeTime)
	waits := make([]time.Duration, children)
	var alive sync.WaitGroup
	alive.Add(children)
	for i := range waits {
		time.Sleep(pauseTime)
		spawned := time.Now()
		go func(wait *time.Duration) {
			*wait = time.Since(spawned)
			alive.Done()
		}(&waits[i])
		compute(turns)
	}
	alive.Wait()
	sortDurations(waits)
	expect(waits[0] > 0, "child-latency: some did not run")
	p99 := percentile(waits, 99)
	result := finishAfter(children, p99*children)
	result.P50Ms = milliseconds(percentile(waits, 50))
	result.P99Ms = milliseconds(p99)
	return result
}
