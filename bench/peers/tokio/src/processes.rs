// SPDX-License-Identifier: MIT
//! Workloads of tasks that start and end.

use crate::support::{expect_right, run_root, Measurement, MILLION};
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Awaits the tasks and returns how many have ended well.
async fn join(tasks: Vec<JoinHandle<()>>) -> usize {
    let mut ended = 0;
    for task in tasks {
        ended += usize::from(task.await.is_ok());
    }
    ended
}

// ---- spawn and submit: a million trivial tasks, from a task and from a thread outside ----

// Their handles are kept, though that keeps the tasks in memory: a counter that all of them add to
// was slower, also when the spawner yielded after every hundred.

async fn trivial() {}

pub fn spawn(runtime: &Runtime) -> Measurement {
    let (ended, elapsed) = run_root(runtime, async {
        join((0..MILLION).map(|_| tokio::spawn(trivial())).collect()).await
    });
    expect_right(ended == MILLION, "spawn: how many have ended");
    Measurement::new(MILLION, elapsed)
}

pub fn submit(runtime: &Runtime) -> Measurement {
    let begin = Instant::now();
    let tasks = (0..MILLION).map(|_| runtime.spawn(trivial())).collect();
    let ended = runtime.block_on(join(tasks));
    let elapsed = begin.elapsed();
    expect_right(ended == MILLION, "submit: how many have ended");
    Measurement::new(MILLION, elapsed)
}

// ---- trees: each task starts some, awaits their numbers and returns the sum ----

// Join handles carry the results, in the memory of the task itself: a channel for each would cost
// two more allocations.

const SKYNET_LEAVES: u64 = 1_000_000;
const SKYNET_DEGREE: u64 = 10;
const SKYNET_TASKS: usize = 1_111_111;

fn skynet_task(first: u64, size: u64) -> JoinHandle<u64> {
    tokio::spawn(async move {
        if size == 1 {
            return first;
        }
        let share = size / SKYNET_DEGREE;
        let children: [_; SKYNET_DEGREE as usize] =
            std::array::from_fn(|i| skynet_task(first + i as u64 * share, share));
        let mut sum = 0;
        for child in children {
            sum += child.await.unwrap();
        }
        sum
    })
}

pub fn skynet(runtime: &Runtime) -> Measurement {
    let (sum, elapsed) = run_root(runtime, async {
        skynet_task(0, SKYNET_LEAVES).await.unwrap()
    });
    expect_right(
        sum == SKYNET_LEAVES * (SKYNET_LEAVES - 1) / 2,
        "skynet: the sum",
    );
    Measurement::new(SKYNET_TASKS, elapsed)
}

const FIB_N: u64 = 30;
const FIB_RESULT: u64 = 832_040;
const FIB_TASKS: usize = 2_692_537;

fn fib_task(n: u64) -> JoinHandle<u64> {
    tokio::spawn(async move {
        if n < 2 {
            return n;
        }
        let (one, other) = (fib_task(n - 1), fib_task(n - 2));
        one.await.unwrap() + other.await.unwrap()
    })
}

pub fn fib(runtime: &Runtime) -> Measurement {
    let (result, elapsed) = run_root(runtime, async { fib_task(FIB_N).await.unwrap() });
    expect_right(result == FIB_RESULT, "fib: the result");
    Measurement::new(FIB_TASKS, elapsed)
}

// ---- steal: one task starts uneven work, the other workers must come and take it ----

const TASKS: usize = 20_000;
const TURNS_MAX: usize = 20_000;
const TURNS_STEP: usize = 7919; // a prime: the lengths differ, and are the same in every run

/// Volatile, so that the compiler keeps each turn.
fn work(turns: usize) {
    let mut work: u64 = 1;
    for i in 0..turns as u64 {
        // SAFETY: a reference to a local is valid for both.
        unsafe {
            let value = std::ptr::read_volatile(&work);
            std::ptr::write_volatile(&mut work, value.wrapping_mul(3).wrapping_add(i));
        }
    }
}

pub fn steal(runtime: &Runtime) -> Measurement {
    let (ended, elapsed) = run_root(runtime, async {
        let task = |i| async move { work(i * TURNS_STEP % TURNS_MAX) };
        join((0..TASKS).map(|i| tokio::spawn(task(i))).collect()).await
    });
    expect_right(ended == TASKS, "steal: how many have ended");
    Measurement::new(TASKS, elapsed)
}
