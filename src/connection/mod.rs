//! The connection of one client: its thread, its sessions and its states.
//!
//! ```text
//!   user's tasks                         the client's own thread
//!   ------------                         -----------------------
//!   Client, Session ──requests──▶ manager ──▶ link ──▶ wire crate ──▶ ensemble
//!        ▲                          │
//!        └────── watch_state, ◀─────┤ one session after the other, each with its epoch
//!                Session::lost      │
//!   listeners, a thread each ◀──────┘
//! ```
//!
//! A user's runtime that is blocked, stopped or gone loses neither session nor clean-up, since
//! nothing of either runs on it.

mod call;
mod clock;
mod core;
mod diagnosis;
mod handle;
mod link;
mod listener;
mod liveness;
mod manager;
mod nodelay;
mod pause;
mod scope;
mod session;
mod state;
mod status;
mod validity;
mod watch;
mod watch_budget;

pub use self::call::Call;
pub(crate) use self::core::Config;
pub use self::handle::CleanupPlace;
pub(crate) use self::handle::{Connection, WeakConnection};
pub use self::link::CloseOutcome;
pub use self::listener::ListenerId;
pub use self::liveness::{LostReason, SessionLost};
pub use self::pause::Pause;
pub(crate) use self::pause::within;
pub(crate) use self::scope::Scope;
pub use self::session::Session;
pub use self::state::{ConnectionState, SessionEpoch, StateChange};
pub use self::status::StateWatch;
pub use self::watch::{Watch, WatchEvent};
