// SPDX-License-Identifier: MIT
//! Workloads of tasks that ask each other, and that find each other.

use crate::support::{expect_right, run_root, Counter, Measurement, MILLION};
use ahash::AHashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::sync::{broadcast, oneshot};
use tokio::time::timeout;

// ---- call, call-timeout: one asks, the other answers ----

/// Each brings the sender for its answer, as is usual for actors on Tokio.
type Question = oneshot::Sender<()>;

async fn serve(mut mailbox: UnboundedReceiver<Question>) {
    while let Some(question) = mailbox.recv().await {
        // The caller may have given up.
        let _ = question.send(());
    }
}

fn start_server() -> UnboundedSender<Question> {
    let (to_server, mailbox) = unbounded_channel();
    tokio::spawn(serve(mailbox));
    to_server
}

async fn ask(server: &UnboundedSender<Question>) {
    let (question, answer) = oneshot::channel();
    server.send(question).unwrap();
    answer.await.unwrap();
}

pub fn call(runtime: &Runtime) -> Measurement {
    let (answers, elapsed) = run_root(runtime, async {
        let server = start_server();
        let mut answers = 0;
        while answers < MILLION {
            ask(&server).await;
            answers += 1;
        }
        answers
    });
    expect_right(answers == MILLION, "call: the answers");
    Measurement::new(MILLION, elapsed)
}

const ANSWER_TIME: Duration = Duration::from_secs(10);

pub fn call_timeout(runtime: &Runtime) -> Measurement {
    let (answers, elapsed) = run_root(runtime, async {
        let server = start_server();
        let mut answers = 0;
        while answers < MILLION {
            timeout(ANSWER_TIME, ask(&server)).await.unwrap();
            answers += 1;
        }
        answers
    });
    expect_right(answers == MILLION, "call-timeout: the answers");
    Measurement::new(MILLION, elapsed)
}

// ---- name-find: one of 1,000 tasks by its name ----

const NAMES: usize = 1000;
const FIND_TIMES: usize = 10_000;

type Registry = Arc<RwLock<AHashMap<String, UnboundedSender<()>>>>;

/// Counts those it finds. Who sends to a task needs no sender of its own for that, so none is cloned.
async fn find_all(registry: Registry, names: Vec<String>) -> usize {
    let mut found = 0;
    for _ in 0..FIND_TIMES {
        for name in &names {
            let registry = registry.read().unwrap();
            found += usize::from(registry.get(name).map_or(false, |task| !task.is_closed()));
        }
    }
    found
}

pub fn name_find(runtime: &Runtime) -> Measurement {
    let names: Vec<_> = (0..NAMES).map(|i| format!("process {i}")).collect();
    let (senders, _mailboxes): (Vec<_>, Vec<_>) = (0..NAMES).map(|_| unbounded_channel()).unzip();
    let registry = names.iter().cloned().zip(senders).collect();
    let registry = Arc::new(RwLock::new(registry));
    let (found, elapsed) = run_root(runtime, find_all(registry, names));
    expect_right(
        found == NAMES * FIND_TIMES,
        "name-find: how many were found",
    );
    Measurement::new(NAMES * FIND_TIMES, elapsed)
}

// ---- publish: a message to 100,000 tasks, ten times, until all have it ----

const MEMBERS: usize = 100_000;
const ROUNDS: usize = 10;

static READY: Counter = Counter::new();
static DONE: Counter = Counter::new();

type News = Arc<[u8; 64]>;

async fn listen(mut news: broadcast::Receiver<News>) {
    READY.count_one(MEMBERS);
    for _ in 0..ROUNDS {
        expect_right(news.recv().await.unwrap().len() == 64, "publish: the news");
    }
    DONE.count_one(MEMBERS);
}

/// The channel has room for all rounds, so nobody lags behind and loses some.
pub fn publish(runtime: &Runtime) -> Measurement {
    let (publisher, _) = broadcast::channel(ROUNDS);
    for _ in 0..MEMBERS {
        runtime.spawn(listen(publisher.subscribe()));
    }
    runtime.block_on(READY.wait_until_complete());
    let (accepted, elapsed) = run_root(runtime, async move {
        let mut accepted = 0;
        for _ in 0..ROUNDS {
            accepted += publisher.send(Arc::new([0; 64])).unwrap();
        }
        DONE.wait_until_complete().await;
        accepted
    });
    expect_right(
        accepted == MEMBERS * ROUNDS,
        "publish: how many have accepted it",
    );
    Measurement::new(MEMBERS * ROUNDS, elapsed)
}
