//! Servers and ensembles in real processes.
#![allow(clippy::unwrap_used, reason = "what fails here fails its test")]

mod cluster;
mod lifetime;
#[path = "../raw/mod.rs"]
mod raw;
mod server;
