// SPDX-License-Identifier: MIT
//! The workloads of `skua bench` on Tokio: runs one of them once and prints what came of it as
//! JSON.

mod idle;
mod messages;
mod processes;
mod support;

use std::process::exit;
use support::Measurement;
use tokio::runtime::{Builder, Runtime};

type Workload = fn(&Runtime) -> Measurement;

const WORKLOADS: &[(&str, Workload)] = &[
    ("spawn", processes::spawn),
    ("submit", processes::submit),
    ("pingpong", messages::pingpong),
    ("pairs", messages::pairs),
    ("ring", messages::ring),
    ("ring100", messages::ring100),
    ("fanin", messages::fanin),
    ("fanout", messages::fanout),
    ("skynet", processes::skynet),
    ("fib", processes::fib),
    ("steal", processes::steal),
    ("yield", messages::yields),
    ("idle-memory", idle::memory),
    ("idle-cpu", idle::cpu),
    ("timers", idle::timers),
    ("wake", idle::wake),
];

fn refuse(message: &str) -> ! {
    eprintln!("{message}\nusage: run --list | run WORKLOAD WORKERS");
    exit(2);
}

fn list() {
    for (name, _) in WORKLOADS {
        println!("{name}");
    }
}

/// As `#[tokio::main]` makes it, with timers and I/O, except for the number of workers.
fn start_runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .unwrap()
}

fn run(name: &str, workers: &str) {
    let workload = WORKLOADS.iter().find(|(known, _)| *known == name);
    let (_, workload) = workload.unwrap_or_else(|| refuse(&format!("no workload '{name}'")));
    let workers = match workers.parse() {
        Ok(workers) if workers > 0 => workers,
        _ => refuse("WORKERS is a number above 0"),
    };
    let runtime = start_runtime(workers);
    workload(&runtime).print(name, workers);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--list"] => list(),
        [name, workers] => run(name, workers),
        _ => refuse("what is to be run?"),
    }
}
