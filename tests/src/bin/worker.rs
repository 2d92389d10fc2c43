//! A process that contends for a lock, for tests of what only processes can show.
//!
//! ```text
//!   worker count CONNECT LOCK COUNTER TASKS CYCLES     adds to a counter under the lock
//!   worker hold CONNECT LOCK TARGET SESSION_MS         holds the lock until it loses it
//! ```
//!
//! It tells on its output what it does, and ends when its input ends.

use std::error::Error;
use std::future::poll_fn;
use std::io::{Read, stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use integration_tests::connect;
use integration_tests::history::{Hold, held_until, now};
use tokio::time::{Interval, interval};
use zookeeper_recipes::{Client, InterProcessMutex, Owner};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// How often the holder's work is polled.
const WORK: Duration = Duration::from_millis(20);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    end_with_input();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["count", servers, lock, counter, tasks, cycles] => {
            count(servers, lock, counter, tasks.parse()?, cycles.parse()?).await
        }
        ["hold", servers, lock, target, session_ms] => {
            hold(servers, lock, target, Duration::from_millis(session_ms.parse()?)).await
        }
        _ => Err(format!("unknown arguments: {arguments:?}").into()),
    }
}

fn end_with_input() {
    thread::spawn(|| {
        let mut rest = Vec::new();
        let _ = stdin().read_to_end(&mut rest);
        std::process::exit(1);
    });
}

/// Says one [`Hold`] a line.
async fn count(
    servers: &str,
    lock: &str,
    counter: &str,
    tasks: usize,
    cycles: usize,
) -> Result<()> {
    let client = connect(servers).await;
    let mutex = InterProcessMutex::new(&client, lock)?;
    let adders: Vec<_> = (0..tasks)
        .map(|_| tokio::spawn(add(client.clone(), mutex.clone(), counter.to_owned(), cycles)))
        .collect();
    for adder in adders {
        adder.await??;
    }
    client.close().await;
    Ok(())
}

async fn add(
    client: Client,
    mutex: InterProcessMutex,
    counter: String,
    cycles: usize,
) -> Result<()> {
    let owner = Owner::new();
    for _ in 0..cycles {
        let guard = mutex.acquire(&owner).await?;
        let mut hold = Hold::begin(&guard);
        let (text, _) = client.get_data(&counter).await?;
        let count: u64 = String::from_utf8(text)?.parse()?;
        // Whatever version it has: nothing but the lock keeps the others out.
        client.set_data(&counter, (count + 1).to_string(), None).await?;
        hold.extend();
        guard.release().await?;
        println!("{hold}");
    }
    Ok(())
}

/// Says `held`, with the moment; and when it is over `lost`, with the last moment at which it was
/// held, the last at which the work was polled, and what became of a late transaction.
async fn hold(servers: &str, lock: &str, target: &str, session: Duration) -> Result<()> {
    let client = Client::builder(servers).session_timeout(session).connect().await?;
    let guard = InterProcessMutex::new(&client, lock)?.acquire(&Owner::new()).await?;
    println!("held {}", now());
    let guard = Arc::new(guard);
    let watched = Arc::clone(&guard);
    let held = held_until(move || watched.is_held());
    let polled = AtomicU64::new(0);
    let ended = guard.while_held(work(interval(WORK), &polled)).await;
    let held = held.join().map_err(|_| "the hold did not end")?;
    let late = guard.transaction().set_data(target, "late", None).commit().await;
    let late = if ended.is_err() && late.is_err() { "refused" } else { "carried-out" };
    println!("lost {held} {} {late}", polled.load(Ordering::SeqCst));
    Ok(())
}

/// Never ends, and notes when it is polled.
async fn work(mut ticks: Interval, polled: &AtomicU64) {
    poll_fn(|cx| {
        polled.store(now(), Ordering::SeqCst);
        while ticks.poll_tick(cx).is_ready() {}
        Poll::Pending
    })
    .await
}
