//! `postrider own-address`.

use crate::config::Config;
use crate::http::wire::{Configured, OwnAddresses};

use super::access::Access;
use super::args::OwnAddress;
use super::failure::{Exit, Failure};
use super::output::Output;

/// Records the owner's addresses.
pub(super) async fn run(config: Config, args: OwnAddress, out: Output) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    let request = OwnAddresses { mailbox: args.of.mailbox, addresses: args.addresses };
    let recorded = match &access {
        Access::Here(postrider) => postrider
            .configure(&request.mailbox, &request.addresses)
            .await
            .map(|seq| Configured { seq: seq.0 })
            .map_err(Failure::from),
        Access::Server(client) => client.post("/v1/admin/own-addresses", &request).await,
    };
    access.close().await;
    let configured = recorded?;
    if out.json {
        out.value(&configured)?;
    } else {
        let count = request.addresses.len();
        out.text(&format!("{count} own addresses recorded\n"))?;
    }
    Ok(Exit::Fine)
}
