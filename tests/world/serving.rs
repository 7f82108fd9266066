//! The built program as a server of its own process.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::settings::words_only;
use crate::world::World;

/// A server that ends with the test at the latest.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Serving {
    /// Starts it on the data directory of a world, with this much more in its environment.
    pub(crate) fn start(world: &World, more: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_postrider"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("POSTRIDER_DATA", world.data_dir())
            .env("TZ", "UTC")
            .env("POSTRIDER_CONFIG", words_only(world))
            .env_remove("POSTRIDER_LOG")
            .envs(more.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on http://").expect(&line);
        let record = std::fs::read(world.data_dir().join("server.json")).expect("there");
        let record: Value = serde_json::from_slice(&record).expect("JSON");
        let token = record["token"].as_str().expect("a token").to_owned();
        Self { address: address.parse().expect("an address"), token, child }
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("reaped");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
