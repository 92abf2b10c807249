// SPDX-License-Identifier: MIT
//! Workloads of what a runtime does when it has nothing to run.

use crate::support::{
    context_switches, cpu_seconds, expect_right, percentile, resident_bytes, run_root, Counter,
    Measurement, MILLION,
};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::task::yield_now;
use tokio::time::sleep_until;

// ---- idle tasks: what they cost in memory and in wake-ups ----

static STARTED: Counter = Counter::new();

/// An actor with 64 bytes of own state, which it has to keep while it waits.
async fn idler(mut mailbox: UnboundedReceiver<()>, of: usize) -> u8 {
    let mut state = [1u8; 64];
    STARTED.count_one(of);
    while mailbox.recv().await.is_some() {
        state
            .iter_mut()
            .for_each(|byte| *byte = byte.wrapping_add(1));
    }
    state.iter().fold(0, |sum, byte| sum ^ byte)
}

/// Starts idle tasks and waits until each waits for its mailbox. The senders keep them alive.
fn start_idlers(runtime: &Runtime, count: usize) -> Vec<UnboundedSender<()>> {
    let mut senders = Vec::with_capacity(count);
    for _ in 0..count {
        let (sender, mailbox) = unbounded_channel();
        runtime.spawn(idler(mailbox, count));
        senders.push(sender);
    }
    runtime.block_on(STARTED.wait_until_complete());
    thread::sleep(Duration::from_millis(10)); // the last ones are on their way to sleep
    senders
}

/// Counted: the task with its state; its mailbox, with the room for 32 messages that an empty one
/// has (of messages without content: those of 8 bytes would take 256 bytes more); one sender, a
/// pointer, without which the mailbox would be closed.
pub fn memory(runtime: &Runtime) -> Measurement {
    let before = resident_bytes();
    let begin = Instant::now();
    let senders = start_idlers(runtime, MILLION);
    let elapsed = begin.elapsed();
    let bytes = (resident_bytes() - before) as f64 / MILLION as f64;
    expect_right(
        senders.iter().all(|sender| !sender.is_closed()),
        "idle-memory: all alive",
    );
    Measurement::new(MILLION, elapsed).with("bytes_per_process", bytes)
}

const FEW: usize = 10_000;

/// How often anything wakes in five seconds, once all has come to rest.
pub fn cpu(runtime: &Runtime) -> Measurement {
    let senders = start_idlers(runtime, FEW);
    thread::sleep(Duration::from_millis(500));
    let begin = Instant::now();
    let before = context_switches();
    thread::sleep(Duration::from_secs(5));
    let wakeups = context_switches() - before;
    let elapsed = begin.elapsed();
    expect_right(
        senders.iter().all(|sender| !sender.is_closed()),
        "idle-cpu: all alive",
    );
    Measurement::new(FEW, elapsed).with("wakeups", wakeups as f64)
}

// ---- timers: a million tasks, each asleep for its own time ----

const ZERO: AtomicU32 = AtomicU32::new(0);
static LATENESS: [AtomicU32; MILLION] = [ZERO; MILLION]; // microseconds
static EARLY: AtomicUsize = AtomicUsize::new(0);
static AWAKE: Counter = Counter::new();

async fn sleeper(number: usize, delay: Duration) {
    let due = Instant::now() + delay;
    sleep_until(due.into()).await;
    let now = Instant::now();
    if now < due {
        EARLY.fetch_add(1, Ordering::Relaxed);
    }
    LATENESS[number].store((now - due).as_micros() as u32, Ordering::Relaxed);
    AWAKE.count_one(MILLION);
}

/// Equally distributed from 0 to 1000 ms (SplitMix64).
fn random_delay(state: &mut u64) -> Duration {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Duration::from_nanos((z ^ (z >> 31)) % 1_000_000_000)
}

pub fn timers(runtime: &Runtime) -> Measurement {
    let cpu = cpu_seconds();
    let (_, elapsed) = run_root(runtime, async {
        let mut random = 0;
        for number in 0..MILLION {
            tokio::spawn(sleeper(number, random_delay(&mut random)));
            if number % 100 == 99 {
                // A task that keeps its worker busy would delay the timers that are due.
                yield_now().await;
            }
        }
        AWAKE.wait_until_complete().await;
    });
    let cpu = cpu_seconds() - cpu;
    expect_right(
        EARLY.load(Ordering::Relaxed) == 0,
        "timers: some fired early",
    );
    expect_right(AWAKE.get() == MILLION, "timers: not all have fired");
    let mut late: Vec<u32> = LATENESS
        .iter()
        .map(|us| us.load(Ordering::Relaxed))
        .collect();
    late.sort_unstable();
    Measurement::new(MILLION, elapsed)
        .with("wall_s", elapsed.as_secs_f64())
        .with("cpu_s", cpu)
        .with("late_p50_us", percentile(&late, 50))
        .with("late_p99_us", percentile(&late, 99))
}

// ---- wake: from a send outside to the task ----

const WAKES: usize = 1000;

/// Returns how long each message took, in nanoseconds.
async fn woken(mut mailbox: UnboundedReceiver<Instant>) -> Vec<u32> {
    let mut waits = Vec::with_capacity(WAKES);
    while let Some(sent) = mailbox.recv().await {
        waits.push(sent.elapsed().as_nanos() as u32);
    }
    waits
}

pub fn wake(runtime: &Runtime) -> Measurement {
    let (sender, mailbox) = unbounded_channel();
    let receiver = runtime.spawn(woken(mailbox));
    for _ in 0..WAKES {
        thread::sleep(Duration::from_millis(1)); // until all workers sleep
        sender.send(Instant::now()).unwrap();
    }
    drop(sender);
    let mut waits = runtime.block_on(receiver).unwrap();
    expect_right(waits.len() == WAKES, "wake: how many messages arrived");
    waits.sort_unstable();
    let p50 = percentile(&waits, 50);
    Measurement::new(WAKES, Duration::from_nanos(p50 as u64 * WAKES as u64))
        .with("p50_us", p50 / 1e3)
        .with("p99_us", percentile(&waits, 99) / 1e3)
}
