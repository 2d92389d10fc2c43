//! A ZooKeeper client of a few lines: it says exactly what a test wants on the wire.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use zookeeper_testing::{Proxy, ZooKeeperServer};

pub(crate) const CREATE: i32 = 1;
pub(crate) const EXISTS: i32 = 3;
pub(crate) const SET_DATA: i32 = 5;
pub(crate) const GET_CHILDREN: i32 = 8;
pub(crate) const PING: i32 = 11;
pub(crate) const CLOSE: i32 = -11;

pub(crate) const NO_NODE: i32 = -101;

/// No test waits longer than this for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct RawClient {
    stream: TcpStream,
    xid: i32,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) xid: i32,
    pub(crate) error: i32,
}

impl RawClient {
    /// Opens a session of ten seconds.
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let mut client = Self::dial(address)?;
        client.open_session()?;
        Ok(client)
    }

    /// Opens a connection and says nothing.
    pub(crate) fn dial(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, xid: 0 })
    }

    pub(crate) fn open_session(&mut self) -> io::Result<()> {
        let mut body = Vec::new();
        body.extend(0_i32.to_be_bytes());
        body.extend(0_i64.to_be_bytes());
        body.extend(10_000_i32.to_be_bytes());
        body.extend(0_i64.to_be_bytes());
        body.extend(bytes_field(&[0; 16]));
        body.push(0);
        self.stream.write_all(&bytes_field(&body))?;
        self.read_frame().map(|_| ())
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends in one write all requests given as operation and body, and returns their xids.
    pub(crate) fn send(&mut self, requests: &[(i32, Vec<u8>)]) -> io::Result<Vec<i32>> {
        let mut xids = Vec::new();
        let mut bytes = Vec::new();
        for (operation, body) in requests {
            let xid = if *operation == PING { -2 } else { self.next_xid() };
            xids.push(xid);
            let header = [xid.to_be_bytes(), operation.to_be_bytes()].concat();
            bytes.extend(bytes_field(&[header, body.clone()].concat()));
        }
        self.stream.write_all(&bytes)?;
        Ok(xids)
    }

    pub(crate) fn receive(&mut self) -> io::Result<Reply> {
        let frame = self.read_frame()?;
        Ok(Reply { xid: i32_at(&frame, 0), error: i32_at(&frame, 12) })
    }

    /// One request and the error code of its reply, 0 for success.
    pub(crate) fn call(&mut self, operation: i32, body: Vec<u8>) -> io::Result<i32> {
        let xids = self.send(&[(operation, body)])?;
        let reply = self.receive()?;
        assert_eq!(reply.xid, xids[0]);
        Ok(reply.error)
    }

    pub(crate) fn exists(&mut self, path: &str) -> io::Result<bool> {
        match self.call(EXISTS, exists(path))? {
            0 => Ok(true),
            NO_NODE => Ok(false),
            error => panic!("exists {path}: {error}"),
        }
    }

    /// Reads to the end of the connection and says how it ended: true for an orderly end.
    pub(crate) fn ended_orderly(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("the connection did not end: {error}"),
        }
    }

    fn next_xid(&mut self) -> i32 {
        self.xid += 1;
        self.xid
    }

    fn read_frame(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = usize::try_from(i32::from_be_bytes(length)).unwrap();
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame)?;
        Ok(frame)
    }
}

/// The body of a create of a persistent node without data that everybody may use.
pub(crate) fn create(path: &str) -> Vec<u8> {
    let anyone = [
        1_i32.to_be_bytes().to_vec(),
        31_i32.to_be_bytes().to_vec(),
        bytes_field(b"world"),
        bytes_field(b"anyone"),
    ];
    [bytes_field(path.as_bytes()), bytes_field(b""), anyone.concat(), vec![0; 4]].concat()
}

pub(crate) fn exists(path: &str) -> Vec<u8> {
    [bytes_field(path.as_bytes()), vec![0]].concat()
}

/// The body of a read of data or of children that sets a watch.
pub(crate) fn watch(path: &str) -> Vec<u8> {
    [bytes_field(path.as_bytes()), vec![1]].concat()
}

pub(crate) fn set_data(path: &str, data: &[u8]) -> Vec<u8> {
    let any_version = (-1_i32).to_be_bytes().to_vec();
    [bytes_field(path.as_bytes()), bytes_field(data), any_version].concat()
}

/// A connection to the server without the proxy sees what the server has really done.
pub(crate) fn server_has(server: &ZooKeeperServer, path: &str) -> bool {
    RawClient::connect(server.address()).unwrap().exists(path).unwrap()
}

pub(crate) fn connected(proxy: &Proxy) -> RawClient {
    RawClient::connect(proxy.address()).unwrap()
}

/// Waits for a state; the test fails where it does not come.
pub(crate) fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !reached() {
        assert!(Instant::now() < deadline, "{what} did not happen in {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn bytes_field(bytes: &[u8]) -> Vec<u8> {
    let length = i32::try_from(bytes.len()).unwrap();
    [&length.to_be_bytes()[..], bytes].concat()
}

fn i32_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}
