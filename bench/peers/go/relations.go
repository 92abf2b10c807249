// SPDX-License-Identifier: MIT

// Workloads of goroutines that ask each other, and that find each other.

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A question brings the channel for its answer, with room for it: so the server never waits for a
// caller that has given up. A caller has one channel for all its questions; only after one that it
// has given up would it need another.
type question struct {
	answer chan struct{}
}

func serve(questions <-chan question) {
	for question := range questions {
		question.answer <- struct{}{}
	}
}

func call() measurement {
	questions := make(chan question)
	go serve(questions)
	begin := time.Now()
	asked := question{make(chan struct{}, 1)}
	for i := 0; i < million; i++ {
		questions <- asked
		<-asked.answer
	}
	result := finish(million, begin)
	close(questions)
	return result
}

const answerTime = 10 * time.Second

// Asks and waits for the answer, both only until the timer fires. Returns whether it was in time.
func ask(questions chan<- question, asked question, late <-chan time.Time) bool {
	select {
	case questions <- asked:
	case <-late:
		return false
	}
	select {
	case <-asked.answer:
		return true
	case <-late:
		return false
	}
}

// One timer is set anew for each question: a context with a timeout would be a new one each time.
func callTimeout() measurement {
	questions := make(chan question)
	go serve(questions)
	begin := time.Now()
	asked := question{make(chan struct{}, 1)}
	timer := time.NewTimer(answerTime)
	for i := 0; i < million; i++ {
		timer.Reset(answerTime)
		expect(ask(questions, asked, timer.C), "call-timeout: one is late")
	}
	timer.Stop()
	result := finish(million, begin)
	close(questions)
	return result
}

const (
	memberCount   = 100000
	publishRounds = 10
	newsSize      = 64
)

// Counts for all once it has got all, as one counter for every message would be what is measured.
func listen(news <-chan []byte, ready, done *sync.WaitGroup) {
	ready.Done()
	for i := 0; i < publishRounds; i++ {
		expect(len(<-news) == newsSize, "publish: the news")
	}
	done.Done()
}

// A group is a slice of the channels of its members; the bytes are shared. A channel has room for
// one message, so that the publisher waits only for a member that has not read the last.
func publish() measurement {
	var ready, done sync.WaitGroup
	ready.Add(memberCount)
	done.Add(memberCount)
	members := make([]chan []byte, memberCount)
	for i := range members {
		members[i] = make(chan []byte, 1)
		go listen(members[i], &ready, &done)
	}
	ready.Wait()
	news := make([]byte, newsSize)
	begin := time.Now()
	for round := 0; round < publishRounds; round++ {
		for _, member := range members {
			member <- news
		}
	}
	done.Wait()
	return finish(memberCount*publishRounds, begin)
}

const (
	nameCount = 1000
	findTimes = 10000
)

// A name leads to the channel of its goroutine. Who adds a name would put a changed copy of the map
// in place, so that readers take no lock: faster than sync.Map.
func nameFind() measurement {
	var registry atomic.Pointer[map[string]chan struct{}]
	names := make([]string, nameCount)
	known := make(map[string]chan struct{}, nameCount)
	for i := range names {
		names[i] = fmt.Sprintf("process %d", i)
		known[names[i]] = make(chan struct{})
	}
	registry.Store(&known)
	begin := time.Now()
	found := 0
	for i := 0; i < findTimes; i++ {
		for _, name := range names {
			if mailbox, ok := (*registry.Load())[name]; ok && mailbox != nil {
				found++
			}
		}
	}
	result := finish(nameCount*findTimes, begin)
	expect(found == nameCount*findTimes, "name-find: how many were found")
	return result
}
