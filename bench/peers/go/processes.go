// SPDX-License-Identifier: MIT

// Workloads of goroutines that start and end.

package main

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// A million goroutines that end at once, started from inside one.
func spawn() measurement {
	begin := time.Now()
	startTrivial(100)
	return finish(million, begin)
}

// The same from a thread of its own. Go knows no thread that is wholly outside: a goroutine locked
// to its thread, which runs nothing else, is what comes closest. It counts as one of the workers.
func submit() measurement {
	runtime.LockOSThread()
	begin := time.Now()
	startTrivial(million)
	return finish(million, begin)
}

// Gives way after each batch, as Skua's spawner does: goroutines that are done make room for the
// next ones, which takes half as long as a million in one go. A locked thread gains nothing by it.
func startTrivial(batch int) {
	var alive sync.WaitGroup
	trivial := func() { alive.Done() }
	alive.Add(million)
	for i := 1; i <= million; i++ {
		go trivial()
		if i%batch == 0 {
			runtime.Gosched()
		}
	}
	alive.Wait()
}

const (
	treeMemory       = 4 << 30 // bytes; from there on it is collected
	skynetLeaves     = million
	skynetDegree     = 10
	skynetGoroutines = 1111111
)

// Trees are all garbage, and small: they are quickest when nobody collects it.
func startTree() time.Time {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(treeMemory)
	return time.Now()
}

// A tree of ten branches each. Parents have room for all their children's numbers, so that a child
// can tell and end without waiting.
func skynet() measurement {
	begin := startTree()
	result := make(chan int, 1)
	go skynetBranch(0, skynetLeaves, result)
	sum := <-result
	measured := finish(skynetGoroutines, begin)
	expect(sum == skynetLeaves*(skynetLeaves-1)/2, "skynet: the sum")
	return measured
}

func skynetBranch(first, size int, parent chan<- int) {
	if size == 1 {
		parent <- first
		return
	}
	children := make(chan int, skynetDegree)
	share := size / skynetDegree
	for i := 0; i < skynetDegree; i++ {
		go skynetBranch(first+i*share, share, children)
	}
	sum := 0
	for i := 0; i < skynetDegree; i++ {
		sum += <-children
	}
	parent <- sum
}

const (
	fibN          = 30
	fibResult     = 832040
	fibGoroutines = 2692537
)

// A goroutine for every call.
func fib() measurement {
	begin := startTree()
	result := make(chan int, 1)
	go fibCall(fibN, result)
	number := <-result
	measured := finish(fibGoroutines, begin)
	expect(number == fibResult, "fib: the result")
	return measured
}

func fibCall(n int, parent chan<- int) {
	if n < 2 {
		parent <- n
		return
	}
	children := make(chan int, 2)
	go fibCall(n-1, children)
	go fibCall(n-2, children)
	parent <- <-children + <-children
}

// The trees as they are really written: whoever has children runs one of them itself, waits for the
// others and finds their numbers in its own memory.
func skynetInline() measurement {
	begin := startTree()
	sum := skynetSum(0, skynetLeaves)
	measured := finish(skynetGoroutines, begin)
	expect(sum == skynetLeaves*(skynetLeaves-1)/2, "skynet-inline: the sum")
	return measured
}

func skynetSum(first, size int) int {
	if size == 1 {
		return first
	}
	var children [skynetDegree]int
	var alive sync.WaitGroup
	share := size / skynetDegree
	alive.Add(skynetDegree - 1)
	for i := 1; i < skynetDegree; i++ {
		go func(i int) {
			children[i] = skynetSum(first+i*share, share)
			alive.Done()
		}(i)
	}
	children[0] = skynetSum(first, share)
	alive.Wait()
	sum := 0
	for _, number := range children {
		sum += number
	}
	return sum
}

func fibInline() measurement {
	begin := startTree()
	number := fibNumber(fibN)
	measured := finish(fibGoroutines, begin)
	expect(number == fibResult, "fib-inline: the result")
	return measured
}

func fibNumber(n int) int {
	if n < 2 {
		return n
	}
	other := make(chan int, 1)
	go func() { other <- fibNumber(n - 1) }()
	return fibNumber(n-2) + <-other
}

const (
	tasks     = 20000
	turnsMax  = 20000
	turnsStep = 7919 // a prime: the lengths differ, and are the same in every run
)

// One goroutine starts tasks of uneven length.
func steal() measurement {
	var alive sync.WaitGroup
	begin := time.Now()
	alive.Add(tasks)
	for i := 0; i < tasks; i++ {
		go func(turns int) {
			work := uint64(1)
			turn(&work, turns)
			alive.Done()
		}(i * turnsStep % turnsMax)
	}
	alive.Wait()
	return finish(tasks, begin)
}

// Works in memory, not in a register: C does the same with a volatile number.
//
//go:noinline
func turn(work *uint64, turns int) {
	for i := 0; i < turns; i++ {
		*work = *work*3 + uint64(i)
	}
}
