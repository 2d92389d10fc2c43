//! Several processes take one lock in turn.
//!
//! ```text
//!   cargo run --example quickstart
//!   ZOOKEEPER=zk1:2181,zk2:2181/app cargo run --example quickstart
//! ```
//!
//! The program starts itself once for each worker. A worker that has the lock calls a function that
//! takes it too, which re-enters; that function adds the fencing token to a record on the server.
//! It reads the record and writes it back, so two holders at one time would lose an entry. In the
//! end the record must be complete, and its tokens must have grown from each entry to the next.
//!
//! Exit status: 0 if that is so, 1 if not, 2 if there is no server to try it on.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use tokio::process::{Child, Command};
use zookeeper_recipes::framework::CreateMode;
use zookeeper_recipes::{Client, InterProcessMutex, MutexGuard, Owner};
use zookeeper_testing::ZooKeeperServer;

const WORKERS: usize = 3;
const ROUNDS: usize = 3;
const LOCK: &str = "/quickstart/lock";
const RECORD: &str = "/quickstart/record-";

/// How long a worker has the lock: long enough for the others to queue up behind it.
const WORK: Duration = Duration::from_millis(150);

/// How long a worker waits for the lock at most.
const PATIENCE: Duration = Duration::from_secs(60);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        [] => match Server::find().await {
            Ok(server) => oversee(&server).await,
            Err(error) => {
                eprintln!("quickstart: {error}");
                return ExitCode::from(2);
            }
        },
        ["worker", name, connect_string, record] => work(name, connect_string, record)
            .await
            .map_err(|error| format!("{name}: {error}").into()),
        _ => Err(format!("takes no arguments, but was given {arguments:?}").into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A server, and a client that is connected to it.
struct Server {
    connect_string: String,
    client: Client,
    /// Ends when it is dropped.
    _own: Option<ZooKeeperServer>,
}

impl Server {
    /// The one that `ZOOKEEPER` names, else the one on this machine, else one of our own.
    async fn find() -> Result<Self> {
        if let Some(named) = env::var_os("ZOOKEEPER") {
            let connect_string = named.to_string_lossy().into_owned();
            println!("connecting to {connect_string}");
            let client = Client::builder(&connect_string).connect().await?;
            return Ok(Self { connect_string, client, _own: None });
        }
        let connect_string = "localhost:2181".to_owned();
        let local = Client::builder(&connect_string).connection_timeout(Duration::from_secs(1));
        if let Ok(client) = local.connect().await {
            return Ok(Self { connect_string, client, _own: None });
        }
        let own = ZooKeeperServer::start()
            .map_err(|error| format!("{error}; or name a server: ZOOKEEPER=host:2181"))?;
        let connect_string = own.connect_string();
        let client = Client::builder(&connect_string).connect().await?;
        Ok(Self { connect_string, client, _own: Some(own) })
    }
}

/// Runs the workers and checks what they recorded.
async fn oversee(server: &Server) -> Result<()> {
    let Server { connect_string, client, .. } = server;
    println!("{WORKERS} processes contend for {LOCK} on {connect_string}");
    // Ephemeral: it goes with this process, however that one ends.
    let mode = CreateMode::EphemeralSequential;
    let record = client.create(RECORD).data("").mode(mode).with_parents().await?.path;

    let workers: Vec<Child> = (1..=WORKERS)
        .map(|number| start(&format!("worker {number}"), connect_string, &record))
        .collect::<Result<_>>()?;
    for (number, mut worker) in (1..).zip(workers) {
        let status = worker.wait().await?;
        if !status.success() {
            return Err(format!("worker {number} failed: {status}").into());
        }
    }

    let (recorded, _) = client.get_data(&record).await?;
    println!("{}", check(&String::from_utf8(recorded)?)?);
    client.close().await;
    Ok(())
}

fn start(name: &str, connect_string: &str, record: &str) -> Result<Child> {
    let mut program = Command::new(env::current_exe()?);
    program.args(["worker", name, connect_string, record]).kill_on_drop(true);
    Ok(program.spawn()?)
}

/// One worker: takes the lock again and again.
async fn work(name: &str, connect_string: &str, record: &str) -> Result<()> {
    let client = Client::builder(connect_string).connect().await?;
    let mutex = InterProcessMutex::new(&client, LOCK)?;
    let owner = Owner::named(name);
    for _ in 0..ROUNDS {
        let guard = mutex.acquire_timeout(&owner, PATIENCE).await?;
        show(name, &guard);
        guard.while_held(tokio::time::sleep(WORK)).await?;
        append_token(&client, &mutex, &owner, record).await?;
        guard.release().await?;
    }
    client.close().await;
    Ok(())
}

/// Adds the token to the record. It takes the lock by itself: called by a holder, it re-enters.
async fn append_token(
    client: &Client,
    mutex: &InterProcessMutex,
    owner: &Owner,
    record: &str,
) -> Result<()> {
    let guard = mutex.acquire(owner).await?;
    show(owner.name().unwrap_or_default(), &guard);
    let (mut tokens, _) = client.get_data(record).await?;
    tokens.extend(format!("{}\n", guard.fencing_token()).into_bytes());
    // The server refuses this if the lock was lost meanwhile.
    guard.transaction().set_data(record, tokens, None).commit().await?;
    guard.release().await?;
    Ok(())
}

fn show(name: &str, guard: &MutexGuard) {
    let token = guard.fencing_token();
    match guard.depth() {
        1 => println!(" {name} holds the lock  token {token}"),
        depth => println!(" {name} holds the lock  token {token}  (re-entered, depth {depth})"),
    }
}

/// What the record shows; an error if it shows that the lock does not hold what it promises.
fn check(record: &str) -> Result<String> {
    let tokens: Vec<i64> = record.lines().map(str::parse).collect::<std::result::Result<_, _>>()?;
    if tokens.len() != WORKERS * ROUNDS {
        let text = format!("{} holds, but {} records: {tokens:?}", WORKERS * ROUNDS, tokens.len());
        return Err(text.into());
    }
    if !tokens.is_sorted_by(|earlier, later| earlier < later) {
        return Err(format!("the tokens do not strictly increase: {tokens:?}").into());
    }
    Ok(format!("{} holds, one after the other: the tokens strictly increase", tokens.len()))
}
