// SPDX-License-Identifier: MIT
//! `run WORKERS`: the server of `make bench-net` on Tokio, a task for each connection. Serves on
//! loopback until its standard input ends. Prints `echo PORT` and `sink PORT`: one sends everything
//! back, the other reads to the end and answers with the number of bytes.
//!
//! One worker is Tokio's scheduler for one thread, more are the one that steals. An echo waits
//! until there is something to read before it has a buffer, which is its thread's, so that idle
//! connections have none; the answer is tried at once, and only what is not taken is copied.

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

const BUFFER_SIZE: usize = 64 * 1024;
const BACKLOG: u32 = 4096;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; BUFFER_SIZE].into_boxed_slice());
}

enum Echo {
    Done,
    Rest(Vec<u8>), // what the peer has not taken
    End,
}

/// Sends back what there is, as far as that is possible at once.
fn try_echo(stream: &TcpStream) -> Result<Echo> {
    BUFFER.with(|buffer| {
        let buffer = &mut buffer.borrow_mut()[..];
        let size = match stream.try_read(buffer) {
            Ok(0) => return Ok(Echo::End),
            Ok(size) => size,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Echo::Done),
            Err(error) => return Err(error),
        };
        let taken = match stream.try_write(&buffer[..size]) {
            Ok(taken) => taken,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        Ok(if taken == size { Echo::Done } else { Echo::Rest(buffer[taken..size].to_vec()) })
    })
}

async fn echo(mut stream: TcpStream) -> Result<()> {
    loop {
        stream.readable().await?;
        match try_echo(&stream)? {
            Echo::Done => {}
            Echo::Rest(rest) => stream.write_all(&rest).await?,
            Echo::End => return Ok(()),
        }
    }
}

async fn sink(mut stream: TcpStream) -> Result<()> {
    let mut buffer = vec![0; BUFFER_SIZE];
    let mut received = 0u64;
    loop {
        let size = stream.read(&mut buffer).await?;
        if size == 0 {
            return stream.write_all(&received.to_le_bytes()).await;
        }
        received += size as u64;
    }
}

fn listen(name: &str) -> Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, 1], 0).into())?;
    let listener = socket.listen(BACKLOG)?;
    println!("{name} {}", listener.local_addr()?.port());
    Ok(listener)
}

/// Errors of a connection are its peer's affair.
async fn serve() -> Result<()> {
    let (echoes, sinks) = (listen("echo")?, listen("sink")?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = sinks.accept().await {
            tokio::spawn(sink(stream));
        }
    });
    loop {
        let (stream, _) = echoes.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(echo(stream));
    }
}

fn workers_of(mut arguments: std::env::Args) -> usize {
    let workers = arguments.nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    if workers == 0 || arguments.next().is_some() {
        eprintln!("usage: run WORKERS");
        std::process::exit(2);
    }
    workers
}

fn main() -> Result<()> {
    let workers = workers_of(std::env::args());
    let mut builder = match workers {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let runtime = builder.worker_threads(workers).enable_all().build()?;
    runtime.block_on(async { tokio::spawn(serve()).await? })
}
