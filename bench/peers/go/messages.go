// SPDX-License-Identifier: MIT

// Workloads of goroutines that talk.

package main

import (
	"runtime"
	"sync"
	"time"
)

// Sends so many balls to a goroutine of its own, which returns them. Channels without a buffer:
// there is never more than one ball.
func playPingpong(roundTrips int) {
	pings := make(chan struct{})
	pongs := make(chan struct{})
	go func() {
		for ball := range pings {
			pongs <- ball
		}
	}()
	for i := 0; i < roundTrips; i++ {
		pings <- struct{}{}
		<-pongs
	}
	close(pings)
}

func pingpong() measurement {
	begin := time.Now()
	playPingpong(million)
	return finish(2*million, begin)
}

const (
	pairCount  = 1000
	roundTrips = 1000
)

func pairs() measurement {
	var playing sync.WaitGroup
	begin := time.Now()
	playing.Add(pairCount)
	for i := 0; i < pairCount; i++ {
		go func() {
			playPingpong(roundTrips)
			playing.Done()
		}()
	}
	playing.Wait()
	return finish(2*pairCount*roundTrips, begin)
}

const ringLength = 1000

// Passes tokens on. A token is a number: how often it is still to be passed on.
func node(tokens <-chan int, next chan<- int, ended chan<- struct{}) {
	for left := range tokens {
		if left > 0 {
			next <- left - 1
		} else {
			ended <- struct{}{}
		}
	}
}

// A node has room for all tokens, so that its neighbour need not wait until it comes to take one.
func ring(tokens int) measurement {
	begin := time.Now()
	ended := make(chan struct{})
	nodes := make([]chan int, ringLength)
	for i := range nodes {
		nodes[i] = make(chan int, tokens)
	}
	for i := range nodes {
		go node(nodes[i], nodes[(i+1)%ringLength], ended)
	}
	for i := 0; i < tokens; i++ {
		nodes[i*ringLength/tokens] <- million/tokens - 1
	}
	for i := 0; i < tokens; i++ {
		<-ended
	}
	return finish(million, begin)
}

const (
	producers   = 100
	produceEach = 10000
	faninBuffer = 1024
)

// Many producers, one consumer. With a buffer, and a roomy one: without it every message would be a
// switch to the consumer and back.
func fanin() measurement {
	begin := time.Now()
	numbers := make(chan int, faninBuffer)
	for i := 0; i < producers; i++ {
		go func() {
			for n := 0; n < produceEach; n++ {
				numbers <- n
			}
		}()
	}
	sum := 0
	for i := 0; i < producers*produceEach; i++ {
		sum += <-numbers
	}
	measured := finish(producers*produceEach, begin)
	expect(sum == producers*produceEach*(produceEach-1)/2, "fanin: the sum")
	return measured
}

const (
	listeners = 1000
	rounds    = 1000
)

// One asks many, all answer, and again. Every question and every answer has room, so that none
// waits to say it.
func fanout() measurement {
	begin := time.Now()
	questions := make([]chan struct{}, listeners)
	answers := make(chan struct{}, listeners)
	for i := range questions {
		questions[i] = make(chan struct{}, 1)
		go func(asked <-chan struct{}) {
			for question := range asked {
				answers <- question
			}
		}(questions[i])
	}
	for round := 0; round < rounds; round++ {
		for _, question := range questions {
			question <- struct{}{}
		}
		for range questions {
			<-answers
		}
	}
	return finish(2*listeners*rounds, begin)
}

// A goroutine that gives way a million times: Go's way through the scheduler and back.
func yield() measurement {
	begin := time.Now()
	for i := 0; i < million; i++ {
		runtime.Gosched()
	}
	return finish(million, begin)
}
