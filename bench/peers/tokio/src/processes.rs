// SPDX-License-Identifier: MIT
//! Workloads of tasks that start and end.

use crate::support::{expect_right, run_root, Counter, Measurement, MILLION};
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::task::{yield_now, JoinHandle};

/// Awaits the tasks and returns how many have ended well.
async fn join(tasks: Vec<JoinHandle<()>>) -> usize {
    let mut ended = 0;
    for task in tasks {
        ended += usize::from(task.await.is_ok());
    }
    ended
}

// ---- spawn: a million trivial tasks, from a task ----

/// After so many the spawner gives way: a task that has ended makes room for the next one. With 8
/// to 1000 it took longer, and so did handles that are kept: they keep the tasks in memory.
const SPAWNED_AT_ONCE: usize = 2;

static ENDED: Counter = Counter::new();

pub fn spawn(runtime: &Runtime) -> Measurement {
    let (_, elapsed) = run_root(runtime, async {
        for _ in 0..MILLION / SPAWNED_AT_ONCE {
            for _ in 0..SPAWNED_AT_ONCE {
                tokio::spawn(async { ENDED.count_one(MILLION) });
            }
            yield_now().await;
        }
        ENDED.wait_until_complete().await;
    });
    expect_right(ENDED.get() == MILLION, "spawn: how many have ended");
    Measurement::new(MILLION, elapsed)
}

// ---- submit: the same from a thread outside ----

// Here handles are faster than a counter, which all the workers would write to.

async fn trivial() {}

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

// The same as tasks are really written, `...-inline`: a task runs one of its children itself. Such a
// future contains another of its own kind, hence the box; leaves need none.

type BoxedTask = Pin<Box<dyn Future<Output = u64> + Send>>;

async fn skynet_node(first: u64, size: u64) -> u64 {
    if size == 1 {
        return first;
    }
    let share = size / SKYNET_DEGREE;
    let children: [_; SKYNET_DEGREE as usize - 1] = std::array::from_fn(|i| {
        let first = first + (i as u64 + 1) * share;
        tokio::spawn(skynet_node_boxed(first, share))
    });
    let mut sum = match share {
        1 => first,
        _ => skynet_node_boxed(first, share).await,
    };
    for child in children {
        sum += child.await.unwrap();
    }
    sum
}

fn skynet_node_boxed(first: u64, size: u64) -> BoxedTask {
    Box::pin(skynet_node(first, size))
}

pub fn skynet_inline(runtime: &Runtime) -> Measurement {
    let (sum, elapsed) = run_root(runtime, skynet_node(0, SKYNET_LEAVES));
    expect_right(
        sum == SKYNET_LEAVES * (SKYNET_LEAVES - 1) / 2,
        "skynet-inline: the sum",
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

fn fib_call(n: u64) -> JoinHandle<u64> {
    tokio::spawn(fib_node(n))
}

async fn fib_node(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let one = fib_call(n - 1);
    let other = match n - 2 {
        leaf @ (0 | 1) => leaf,
        more => fib_node_boxed(more).await,
    };
    one.await.unwrap() + other
}

fn fib_node_boxed(n: u64) -> BoxedTask {
    Box::pin(fib_node(n))
}

pub fn fib_inline(runtime: &Runtime) -> Measurement {
    let (result, elapsed) = run_root(runtime, fib_node(FIB_N));
    expect_right(result == FIB_RESULT, "fib-inline: the result");
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
