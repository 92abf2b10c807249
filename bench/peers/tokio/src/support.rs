// SPDX-License-Identifier: MIT
//! What several workloads need: running and timing, checking, reporting.

use std::fs;
use std::future::Future;
use std::process::exit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

pub const MILLION: usize = 1_000_000;

/// What one run has to say. `extra` holds further fields of the JSON object.
pub struct Measurement {
    pub ops: usize,
    pub elapsed: Duration,
    pub resident_bytes: usize,
    pub extra: Vec<(&'static str, f64)>,
}

impl Measurement {
    pub fn new(ops: usize, elapsed: Duration) -> Self {
        Measurement {
            ops,
            elapsed,
            resident_bytes: resident_bytes(),
            extra: Vec::new(),
        }
    }

    pub fn with(mut self, name: &'static str, value: f64) -> Self {
        self.extra.push((name, value));
        self
    }

    pub fn print(&self, workload: &str, workers: usize) {
        let extra: String = self
            .extra
            .iter()
            .map(|(name, value)| format!(", \"{name}\": {value:.3}"))
            .collect();
        println!(
            "{{\"workload\": \"{workload}\", \"workers\": {workers}, \"ops\": {}, \
             \"ns_per_op\": {:.3}, \"rss_bytes\": {}{extra}}}",
            self.ops,
            self.elapsed.as_nanos() as f64 / self.ops as f64,
            self.resident_bytes,
        );
    }
}

/// What a runtime is started with beside its workers: only what is used, as the rest costs time.
#[derive(PartialEq)]
pub enum Drivers {
    Nothing,
    Timers,
}

pub fn start_runtime(workers: usize, drivers: Drivers) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers);
    if drivers == Drivers::Timers {
        builder.enable_time();
    }
    builder.build().unwrap()
}

/// Runs a root task to its end on a worker, not on the thread that waits here.
pub fn run_root<F>(runtime: &Runtime, root: F) -> (F::Output, Duration)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let begin = Instant::now();
    let result = runtime.block_on(runtime.spawn(root)).unwrap();
    (result, begin.elapsed())
}

/// Ends the program with a message unless the result is right.
pub fn expect_right(right: bool, what: &str) {
    if !right {
        eprintln!("wrong result: {what}");
        exit(1);
    }
}

/// Counts tasks that have come to a certain point, and tells when all have. It lives in a static:
/// a shared pointer would cost each task two more atomic operations.
pub struct Counter {
    count: AtomicUsize,
    complete: Notify,
}

impl Counter {
    pub const fn new() -> Self {
        Counter {
            count: AtomicUsize::new(0),
            complete: Notify::const_new(),
        }
    }

    pub fn count_one(&self, of: usize) {
        if self.count.fetch_add(1, Ordering::AcqRel) + 1 == of {
            self.complete.notify_one();
        }
    }

    /// `notify_one` before this is not lost.
    pub async fn wait_until_complete(&self) {
        self.complete.notified().await;
    }

    pub fn get(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }
}

pub fn percentile(sorted: &[u32], percent: usize) -> f64 {
    permille(sorted, 10 * percent)
}

pub fn permille(sorted: &[u32], permille: usize) -> f64 {
    f64::from(sorted[sorted.len() * permille / 1000])
}

/// Fixed work, xorshift: never 0, and no compiler can foresee where it ends.
#[inline(never)]
pub fn compute(turns: u64) {
    let mut value = turns | 1;
    for _ in 0..turns {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    expect_right(value != 0, "what was computed");
}

const TRIALS: usize = 1000; // short ones: some are not interrupted, even on a busy machine
const TRIAL_TURNS: u64 = 100_000;

/// How many turns take so long on a CPU that has nothing else to do, by the fastest of all trials.
pub fn turns_of(duration: Duration) -> u64 {
    let trial = |_| {
        let begin = Instant::now();
        compute(TRIAL_TURNS);
        begin.elapsed().as_nanos() as u64
    };
    let fastest = (0..TRIALS).map(trial).min().unwrap();
    duration.as_nanos() as u64 * TRIAL_TURNS / fastest
}

/// User and system time of all threads.
pub fn cpu_seconds() -> f64 {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    // SAFETY: a rusage of zeros is valid, and getrusage writes to nothing else.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

pub fn resident_bytes() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    // SAFETY: sysconf only reads.
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize
}

/// Context switches of all threads but the main one.
pub fn context_switches() -> u64 {
    let main = std::process::id().to_string();
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(Result::unwrap);
    tasks
        .filter(|task| task.file_name().to_str() != Some(&main))
        .map(|task| fs::read_to_string(task.path().join("status")).unwrap())
        .map(|status| switches_of_thread(&status))
        .sum()
}

fn switches_of_thread(status: &str) -> u64 {
    let fields = status
        .lines()
        .filter_map(|line| line.split_once("ctxt_switches:"));
    fields
        .map(|(_, count)| count.trim().parse::<u64>().unwrap())
        .sum()
}
