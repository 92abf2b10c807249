// SPDX-License-Identifier: MIT
//! Stopping a runtime while threads of the same program keep all CPUs busy; stopping many tasks of
//! one set.

use crate::support::{
    compute, expect_right, permille, run_root, start_runtime, Counter, Drivers, Measurement,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver};
use tokio::task::JoinSet;

const ROUNDS: usize = 50;
const RESTING: usize = 1000;
const SETTLE: Duration = Duration::from_millis(2);
const SPINNER_TURNS: u64 = 1000;

static STOPPED: AtomicBool = AtomicBool::new(false);

fn spin() {
    while !STOPPED.load(Ordering::Relaxed) {
        compute(SPINNER_TURNS);
    }
}

/// Waits for messages, which never come.
async fn rest(mut mailbox: UnboundedReceiver<()>, resting: Arc<AtomicUsize>) {
    resting.fetch_add(1, Ordering::Relaxed);
    while mailbox.recv().await.is_some() {}
}

/// Returns how many nanoseconds the stop took. That is to drop the runtime, which ends each task
/// and waits for the threads.
fn stop_one(workers: usize) -> u32 {
    let runtime = start_runtime(workers, Drivers::Nothing);
    let resting = Arc::new(AtomicUsize::new(0));
    let mut senders = Vec::with_capacity(RESTING);
    for _ in 0..RESTING {
        let (sender, mailbox) = unbounded_channel();
        runtime.spawn(rest(mailbox, resting.clone()));
        senders.push(sender);
    }
    while resting.load(Ordering::Relaxed) < RESTING {
        thread::sleep(Duration::from_micros(50));
    }
    thread::sleep(SETTLE); // the last ones are on their way to rest
    let begin = Instant::now();
    drop(runtime);
    let elapsed = begin.elapsed().as_nanos() as u32;
    expect_right(
        senders.iter().all(|sender| sender.is_closed()),
        "stop: some live on",
    );
    elapsed
}

pub fn stop(workers: usize) -> Measurement {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let spinners: Vec<_> = (0..cpus).map(|_| thread::spawn(spin)).collect();
    let mut times: Vec<u32> = (0..ROUNDS).map(|_| stop_one(workers)).collect();
    STOPPED.store(true, Ordering::Relaxed);
    for spinner in spinners {
        spinner.join().unwrap();
    }
    times.sort_unstable();
    let p50 = permille(&times, 500);
    Measurement::new(ROUNDS, Duration::from_nanos(p50 as u64 * ROUNDS as u64))
        .with("p50_ms", p50 / 1e6)
        .with("max_ms", f64::from(times[ROUNDS - 1]) / 1e6)
}

// ---- stop-children: 10,000 tasks of a set, stopped at once ----

const CHILDREN: usize = 10_000;

static STARTED: Counter = Counter::new();

/// Aborts all and waits until each has ended.
pub fn stop_children(runtime: &Runtime) -> Measurement {
    let mut children = JoinSet::new();
    for _ in 0..CHILDREN {
        children.spawn_on(
            async {
                STARTED.count_one(CHILDREN);
                std::future::pending::<()>().await;
            },
            runtime.handle(),
        );
    }
    runtime.block_on(STARTED.wait_until_complete());
    expect_right(
        children.len() == CHILDREN,
        "stop-children: how many there are",
    );
    let (left, elapsed) = run_root(runtime, async move {
        children.shutdown().await;
        children.len()
    });
    expect_right(left == 0, "stop-children: some live on");
    Measurement::new(CHILDREN, elapsed)
}
