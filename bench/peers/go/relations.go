// SPDX-License-Identifier: MIT

// Workloads of goroutines that ask each other, and that find each other.

package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A question brings the channel for its answer, with room for it: so the server never waits for a
// caller that has given up.
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
	for i := 0; i < million; i++ {
		asked := question{make(chan struct{}, 1)}
		questions <- asked
		<-asked.answer
	}
	result := finish(million, begin)
	close(questions)
	return result
}

const answerTime = 10 * time.Second

// Asks and waits for the answer, both only as long as the context lasts.
func ask(ctx context.Context, questions chan<- question) error {
	asked := question{make(chan struct{}, 1)}
	select {
	case questions <- asked:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-asked.answer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func callTimeout() measurement {
	questions := make(chan question)
	go serve(questions)
	begin := time.Now()
	for i := 0; i < million; i++ {
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		err := ask(ctx, questions)
		cancel()
		expect(err == nil, "call-timeout: one is late")
	}
	result := finish(million, begin)
	close(questions)
	return result
}

const (
	nameCount = 1000
	findTimes = 10000
)

// A name leads to the channel of its goroutine. sync.Map is for what is written once and read often.
func nameFind() measurement {
	var registry sync.Map
	names := make([]string, nameCount)
	for i := range names {
		names[i] = fmt.Sprintf("process %d", i)
		registry.Store(names[i], make(chan struct{}))
	}
	begin := time.Now()
	found := 0
	for i := 0; i < findTimes; i++ {
		for _, name := range names {
			if mailbox, ok := registry.Load(name); ok && mailbox.(chan struct{}) != nil {
				found++
			}
		}
	}
	result := finish(nameCount*findTimes, begin)
	expect(found == nameCount*findTimes, "name-find: how many were found")
	return result
}
