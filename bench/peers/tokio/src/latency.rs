// SPDX-License-Identifier: MIT
//! Workloads of tasks that compute, and of what has to run beside them.

use crate::support::{compute, expect_right, permille, run_root, turns_of, Counter, Measurement};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::{block_in_place, yield_now};
use tokio::time::{sleep, sleep_until};

const MS: f64 = 1e6; // nanoseconds

// ---- heartbeat: a task beats a thousand times a second beside others that compute ----

const PERIOD: Duration = Duration::from_millis(1);
const BEATS: u32 = 2000;
const WARM: Duration = Duration::from_millis(100);
const ALONE: Duration = Duration::from_millis(500); // before the heartbeat, and again after it

/// All steps that have been completed. A step takes at least 0.1 ms: adding to it costs nothing.
static STEPS: AtomicU64 = AtomicU64::new(0);
static OVER: AtomicBool = AtomicBool::new(false);

fn steps_so_far() -> u64 {
    STEPS.load(Ordering::Relaxed)
}

/// Gives way after each step, as Tokio's users have to: nobody else would make it. A runtime that
/// looks for timers more often (`event_interval`) was no better.
async fn crunch(turns: u64) {
    while !OVER.load(Ordering::Relaxed) {
        compute(turns);
        STEPS.fetch_add(1, Ordering::Relaxed);
        yield_now().await;
    }
}

/// How many steps there were in a time.
#[derive(Default)]
struct Phase {
    steps: u64,
    elapsed: Duration,
}

impl Phase {
    fn per_second(&self) -> f64 {
        self.steps as f64 / self.elapsed.as_secs_f64()
    }

    /// Adds the steps of some time without the heartbeat.
    fn watch_alone(&mut self) {
        let before = steps_so_far();
        let begin = Instant::now();
        thread::sleep(ALONE);
        self.steps += steps_so_far() - before;
        self.elapsed += begin.elapsed();
    }
}

struct Beats {
    late: Vec<u32>, // nanoseconds
    between: Vec<u32>,
    beside: Phase,
}

/// Beats that are missed altogether are left out: the next one is that after now.
async fn beat() -> Beats {
    let (mut late, mut between) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    let first = steps_so_far();
    let (mut before, mut elapsed, mut next) = (first, Duration::ZERO, 1);
    while next <= BEATS {
        let due = begin + next * PERIOD;
        sleep_until(due.into()).await;
        let now = Instant::now();
        let done = steps_so_far();
        expect_right(now >= due, "heartbeat: one is early");
        late.push((now - due).as_nanos() as u32);
        between.push((done - before) as u32);
        before = done;
        elapsed = now - begin;
        next = (elapsed.as_nanos() / PERIOD.as_nanos()) as u32 + 1;
    }
    late.sort_unstable();
    between.sort_unstable();
    let steps = before - first;
    Beats {
        late,
        between,
        beside: Phase { steps, elapsed },
    }
}

fn heartbeat(runtime: &Runtime, crunchers: usize, step: Duration) -> Measurement {
    let turns = turns_of(step);
    let tasks: Vec<_> = (0..crunchers)
        .map(|_| runtime.spawn(crunch(turns)))
        .collect();
    let mut alone = Phase::default();
    thread::sleep(WARM);
    alone.watch_alone();
    let (beats, _) = run_root(runtime, beat());
    alone.watch_alone();
    OVER.store(true, Ordering::Relaxed);
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    let p99 = permille(&beats.late, 990);
    let count = beats.late.len();
    let rate = beats.beside.per_second();
    Measurement::new(count, Duration::from_nanos(p99 as u64 * count as u64))
        .with("p50_ms", permille(&beats.late, 500) / MS)
        .with("p99_ms", p99 / MS)
        .with("p999_ms", permille(&beats.late, 999) / MS)
        .with("steps_between_p50", permille(&beats.between, 500))
        .with("steps_between_p99", permille(&beats.between, 990))
        .with("steps_per_second", rate)
        .with("throughput_share", rate / alone.per_second())
}

pub fn heartbeat_4x5ms(runtime: &Runtime) -> Measurement {
    heartbeat(runtime, 4, Duration::from_millis(5))
}

pub fn heartbeat_50x1ms(runtime: &Runtime) -> Measurement {
    heartbeat(runtime, 50, Duration::from_millis(1))
}

pub fn heartbeat_500x01ms(runtime: &Runtime) -> Measurement {
    heartbeat(runtime, 500, Duration::from_micros(100))
}

// ---- child-latency: a task starts another and computes on ----

const CHILDREN: usize = 500;
const COMPUTE: Duration = Duration::from_millis(2);
const PAUSE: Duration = Duration::from_millis(1);

static RUN: Counter = Counter::new();

/// Tells the runtime that it computes for a while, or else the child would wait for its end: a worker
/// runs the task that was started last by itself.
async fn parent(turns: u64, waits: Arc<[AtomicU32]>) {
    for number in 0..CHILDREN {
        sleep(PAUSE).await;
        let waits = waits.clone();
        let spawned = Instant::now();
        tokio::spawn(async move {
            let wait = spawned.elapsed().as_nanos() as u32;
            waits[number].store(wait, Ordering::Relaxed);
            RUN.count_one(CHILDREN);
        });
        block_in_place(|| compute(turns));
    }
    RUN.wait_until_complete().await;
}

pub fn child_latency(runtime: &Runtime) -> Measurement {
    let turns = turns_of(COMPUTE);
    let waits: Arc<[AtomicU32]> = (0..CHILDREN).map(|_| AtomicU32::new(0)).collect();
    run_root(runtime, parent(turns, waits.clone()));
    let mut waits: Vec<u32> = waits.iter().map(|ns| ns.load(Ordering::Relaxed)).collect();
    waits.sort_unstable();
    expect_right(waits[0] > 0, "child-latency: some did not run");
    let p99 = permille(&waits, 990);
    Measurement::new(CHILDREN, Duration::from_nanos(p99 as u64 * CHILDREN as u64))
        .with("p50_ms", permille(&waits, 500) / MS)
        .with("p99_ms", p99 / MS)
}
