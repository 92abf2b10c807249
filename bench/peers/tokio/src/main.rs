// SPDX-License-Identifier: MIT
//! The workloads of `skua bench` on Tokio: runs one of them once and prints what came of it as
//! JSON.

mod idle;
mod latency;
mod messages;
mod processes;
mod relations;
mod stopping;
mod support;

use std::process::exit;
use support::{start_runtime, Drivers, Measurement};
use tokio::runtime::Runtime;

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
    ("skynet-inline", processes::skynet_inline),
    ("fib-inline", processes::fib_inline),
    ("steal", processes::steal),
    ("yield", messages::yields),
    ("call", relations::call),
    ("call-timeout", relations::call_timeout),
    ("publish", relations::publish),
    ("stop-children", stopping::stop_children),
    ("name-find", relations::name_find),
    // A future is straight-line code already.
    ("task-pingpong", messages::pingpong),
    ("task-spawn", processes::spawn),
    ("task-memory", idle::memory),
    ("idle-memory", idle::memory),
    ("idle-cpu", idle::cpu),
    ("timers", idle::timers),
    ("wake", idle::wake),
    ("heartbeat-4x5ms", latency::heartbeat_4x5ms),
    ("heartbeat-50x1ms", latency::heartbeat_50x1ms),
    ("heartbeat-500x0.1ms", latency::heartbeat_500x01ms),
    ("child-latency", latency::child_latency),
];

fn drivers_of(name: &str) -> Drivers {
    match name {
        "timers" | "call-timeout" | "child-latency" => Drivers::Timers,
        _ if name.starts_with("heartbeat-") => Drivers::Timers,
        _ => Drivers::Nothing,
    }
}

/// It makes its own runtimes, with so many workers.
const STOP: (&str, fn(usize) -> Measurement) = ("stop", stopping::stop);

fn refuse(message: &str) -> ! {
    eprintln!("{message}\nusage: run --list | run WORKLOAD WORKERS");
    exit(2);
}

fn list() {
    for (name, _) in WORKLOADS {
        println!("{name}");
    }
    println!("{}", STOP.0);
}

fn run(name: &str, workers: &str) {
    let workers = match workers.parse() {
        Ok(workers) if workers > 0 => workers,
        _ => refuse("WORKERS is a number above 0"),
    };
    let measurement = if name == STOP.0 {
        STOP.1(workers)
    } else {
        let workload = WORKLOADS.iter().find(|(known, _)| *known == name);
        let (_, workload) = workload.unwrap_or_else(|| refuse(&format!("no workload '{name}'")));
        workload(&start_runtime(workers, drivers_of(name)))
    };
    measurement.print(name, workers);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--list"] => list(),
        [name, workers] => run(name, workers),
        _ => refuse("what is to be run?"),
    }
}
