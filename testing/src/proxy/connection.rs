//! One connection of a client, and the one to the server that goes with it.
//!
//! A fault ends the two differently: the client's is reset, the server's is closed in order. Then
//! the server has every request that was delivered to it, and it takes each for sent by a client
//! that is gone now.

use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::pump::{Break, Context, Pump};
use super::settings::{Flow, Lane, Orders, Protocol, Settings};
use super::shared::Shared;

/// How long a side that was closed in order may take to close as well.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);
const DIAL_PAUSE: Duration = Duration::from_millis(10);
const DRAIN_SIZE: usize = 16 << 10;

/// A client that was let in.
pub(super) struct Connection {
    client: TcpStream,
    settings: watch::Receiver<Settings>,
    began_with: Orders,
    open: OpenConnection,
}

/// The proxy's count of open connections, and this one in it.
struct OpenConnection {
    shared: Arc<Shared>,
    number: u64,
}

impl Connection {
    /// An order given from now on ends this connection.
    pub(super) fn begin(
        client: TcpStream,
        settings: watch::Receiver<Settings>,
        shared: Arc<Shared>,
    ) -> Self {
        shared.counts.lock().add_connection();
        let open = OpenConnection { number: shared.begin(), shared };
        let began_with = settings.borrow().orders;
        Self { client, settings, began_with, open }
    }

    /// Carries the connection until it ends.
    pub(super) async fn serve(self) {
        let Self { mut client, settings, began_with, open } = self;
        let dialled = tokio::select! {
            biased;
            why = ordered(settings.clone(), began_with) => Err(why),
            dialled = dial(settings.clone()) => dialled,
        };
        let mut server = match dialled {
            Ok(server) => server,
            Err(why) => return finish(why, client, None, open).await,
        };
        let dialogue = Arc::default();
        let context = Context { settings: settings.clone(), shared: open.shared.clone(), dialogue };
        let carried = tokio::select! {
            biased;
            why = ordered(settings, began_with) => Err(why),
            carried = carry(&mut client, &mut server, context) => carried,
        };
        if let Err(why) = carried {
            finish(why, client, Some(server), open).await;
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.shared.end(self.number);
    }
}

/// Ends when the proxy was told to end the connections that began before.
async fn ordered(mut settings: watch::Receiver<Settings>, began_with: Orders) -> Break {
    match settings.wait_for(|settings| settings.orders != began_with).await {
        Ok(settings) if settings.orders.cuts != began_with.cuts => Break::Cut,
        Ok(_) | Err(_) => Break::Closed,
    }
}

/// The connection to the server; what cannot reach it is no connection for the client either.
async fn dial(mut settings: watch::Receiver<Settings>) -> Result<TcpStream, Break> {
    let (target, protocol) = match settings.wait_for(|it| it.up.flow == Flow::Moving).await {
        Ok(settings) => (settings.target, settings.protocol),
        Err(_) => return Err(Break::Closed),
    };
    let give_up = Instant::now() + dial_patience(protocol);
    loop {
        match TcpStream::connect(target).await {
            Ok(server) => return server.set_nodelay(true).map(|()| server).map_err(|_| Break::Cut),
            Err(_) if Instant::now() < give_up => sleep(DIAL_PAUSE).await,
            Err(_) => return Err(Break::Cut),
        }
    }
}

/// A server dials a new leader again when that one does not listen yet, but only where it is
/// refused: after the reset with which a proxy would answer it starts a new election instead.
fn dial_patience(protocol: Protocol) -> Duration {
    match protocol {
        Protocol::Client | Protocol::Opaque => Duration::ZERO,
        Protocol::Quorum | Protocol::Election(_) => Duration::from_secs(1),
    }
}

async fn carry(
    client: &mut TcpStream,
    server: &mut TcpStream,
    context: Context,
) -> Result<(), Break> {
    let (client_source, client_sink) = client.split();
    let (server_source, server_sink) = server.split();
    let up = Pump::new(Lane::Up, client_source, server_sink, context.clone());
    let down = Pump::new(Lane::Down, server_source, client_sink, context);
    tokio::try_join!(up.run(), down.run()).map(|_| ())
}

async fn finish(why: Break, client: TcpStream, server: Option<TcpStream>, open: OpenConnection) {
    match why {
        Break::Cut => {
            reset(client);
            server.into_iter().for_each(reset);
        }
        Break::Closed => {
            tokio::join!(close(Some(client)), close(server));
        }
        Break::HoldDropped => {
            reset(client);
            close(server).await;
        }
        Break::Fault(fault) => {
            fault.happen(|| reset(client));
            close(server).await;
        }
    }
    drop(open);
}

/// Closes at once and without order: the other side is told that the connection was reset.
pub(super) fn reset(stream: TcpStream) {
    // It fails only where the connection is gone already.
    set_socket_linger(&stream, Some(Duration::ZERO)).ok();
}

/// Closes in order. A socket that is closed with unread bytes in it resets its connection, so these
/// are read first, until the other side has closed as well.
async fn close(stream: Option<TcpStream>) {
    let Some(mut stream) = stream else { return };
    let drained = async {
        let mut discarded = vec![0; DRAIN_SIZE];
        stream.shutdown().await.ok();
        while stream.read(&mut discarded).await.is_ok_and(|count| count > 0) {}
    };
    timeout(DRAIN_PATIENCE, drained).await.ok();
}
