// SPDX-License-Identifier: MIT
//! Workloads of tasks that talk: actors as Tokio's users write them, a task and the mpsc channel
//! that is its mailbox.
//!
//! The channels are unbounded: these are the faster ones (no semaphore), and a send need not be
//! awaited. An actor ends when all senders of its mailbox are gone.

use crate::support::{expect_right, run_root, Measurement, MILLION};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};

// ---- pingpong and pairs: two tasks, or many twos, and round trips ----

/// Answers each message.
async fn pong(mut mailbox: UnboundedReceiver<()>, asker: UnboundedSender<()>) {
    while mailbox.recv().await.is_some() {
        // The asker is gone at the end.
        let _ = asker.send(());
    }
}

/// Returns how many answers it got.
async fn ping(round_trips: usize) -> usize {
    let (to_me, mut mailbox) = unbounded_channel();
    let (to_pong, pong_mailbox) = unbounded_channel();
    tokio::spawn(pong(pong_mailbox, to_me));
    let mut answers = 0;
    while answers < round_trips {
        to_pong.send(()).unwrap();
        mailbox.recv().await.unwrap();
        answers += 1;
    }
    answers
}

pub fn pingpong(runtime: &Runtime) -> Measurement {
    let (answers, elapsed) = run_root(runtime, ping(MILLION));
    expect_right(answers == MILLION, "pingpong: the answers");
    Measurement::new(2 * MILLION, elapsed)
}

const PAIRS: usize = 1000;
const ROUND_TRIPS: usize = 1000;

pub fn pairs(runtime: &Runtime) -> Measurement {
    let (answers, elapsed) = run_root(runtime, async {
        let pairs: Vec<_> = (0..PAIRS)
            .map(|_| tokio::spawn(ping(ROUND_TRIPS)))
            .collect();
        let mut answers = 0;
        for pair in pairs {
            answers += pair.await.unwrap();
        }
        answers
    });
    expect_right(answers == PAIRS * ROUND_TRIPS, "pairs: the answers");
    Measurement::new(2 * PAIRS * ROUND_TRIPS, elapsed)
}

// ---- ring: tasks in a circle pass tokens on ----

const RING_LENGTH: usize = 1000;

/// A token says how often it is still to be passed on. Who gets one that is 0 tells the root.
type Token = usize;

async fn node(
    mut mailbox: UnboundedReceiver<Token>,
    next: UnboundedSender<Token>,
    root: UnboundedSender<()>,
) {
    while let Some(left) = mailbox.recv().await {
        // At the end others may be gone first.
        let _ = if left > 0 {
            next.send(left - 1).is_ok()
        } else {
            root.send(()).is_ok()
        };
    }
}

/// Builds the ring, puts the tokens in at equal distances and returns how many came to their end.
async fn ring_root(tokens: usize) -> usize {
    let (to_root, mut mailbox) = unbounded_channel();
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..RING_LENGTH).map(|_| unbounded_channel()).unzip();
    for (i, receiver) in receivers.into_iter().enumerate() {
        let next = senders[(i + 1) % RING_LENGTH].clone();
        tokio::spawn(node(receiver, next, to_root.clone()));
    }
    for i in 0..tokens {
        senders[i * RING_LENGTH / tokens]
            .send(MILLION / tokens - 1)
            .unwrap();
    }
    let mut ended = 0;
    while ended < tokens {
        mailbox.recv().await.unwrap();
        ended += 1;
    }
    ended
}

fn run_ring(runtime: &Runtime, tokens: usize) -> Measurement {
    let (ended, elapsed) = run_root(runtime, ring_root(tokens));
    expect_right(
        ended == tokens,
        "ring: how many tokens have come to their end",
    );
    Measurement::new(MILLION, elapsed)
}

pub fn ring(runtime: &Runtime) -> Measurement {
    run_ring(runtime, 1)
}

pub fn ring100(runtime: &Runtime) -> Measurement {
    run_ring(runtime, 100)
}

// ---- fanin: many producers, one consumer ----

const PRODUCERS: usize = 100;
const PRODUCE_EACH: u64 = 10_000;

async fn produce(consumer: UnboundedSender<u64>) {
    for i in 0..PRODUCE_EACH {
        consumer.send(i).unwrap();
    }
}

/// Returns the number of messages and their sum. What has come is taken in one go.
async fn consume() -> (u64, u64) {
    let (sender, mut mailbox) = unbounded_channel();
    for _ in 0..PRODUCERS {
        tokio::spawn(produce(sender.clone()));
    }
    drop(sender);
    let (mut count, mut sum) = (0, 0);
    while let Some(value) = mailbox.recv().await {
        count += 1;
        sum += value;
        while let Ok(value) = mailbox.try_recv() {
            count += 1;
            sum += value;
        }
    }
    (count, sum)
}

pub fn fanin(runtime: &Runtime) -> Measurement {
    const TOTAL: u64 = PRODUCERS as u64 * PRODUCE_EACH;
    let ((count, sum), elapsed) = run_root(runtime, consume());
    expect_right(count == TOTAL, "fanin: the number of messages");
    expect_right(sum == TOTAL * (PRODUCE_EACH - 1) / 2, "fanin: the sum");
    Measurement::new(TOTAL as usize, elapsed)
}

// ---- fanout: one asks many, all answer, and again ----

const LISTENERS: usize = 1000;
const ROUNDS: usize = 1000;

/// Returns how many answers it got.
async fn speak() -> usize {
    let (to_me, mut mailbox) = unbounded_channel();
    let mut listeners = Vec::with_capacity(LISTENERS);
    for _ in 0..LISTENERS {
        let (to_listener, listener_mailbox) = unbounded_channel();
        tokio::spawn(pong(listener_mailbox, to_me.clone()));
        listeners.push(to_listener);
    }
    let mut answers = 0;
    for _ in 0..ROUNDS {
        for listener in &listeners {
            listener.send(()).unwrap();
        }
        for _ in 0..LISTENERS {
            mailbox.recv().await.unwrap();
            answers += 1;
        }
    }
    answers
}

pub fn fanout(runtime: &Runtime) -> Measurement {
    let (answers, elapsed) = run_root(runtime, speak());
    expect_right(answers == LISTENERS * ROUNDS, "fanout: the answers");
    Measurement::new(2 * LISTENERS * ROUNDS, elapsed)
}

// ---- yield: back to the scheduler and on ----

pub fn yields(runtime: &Runtime) -> Measurement {
    let (done, elapsed) = run_root(runtime, async {
        let mut done = 0;
        while done < MILLION {
            tokio::task::yield_now().await;
            done += 1;
        }
        done
    });
    expect_right(done == MILLION, "yield: how many");
    Measurement::new(MILLION, elapsed)
}
