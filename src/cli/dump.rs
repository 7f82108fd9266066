//! `postrider dump`.

use crate::config::Config;
use crate::http::wire::path_segment;

use super::access::Access;
use super::args::OfMailbox;
use super::failure::{Exit, Failure};
use super::output::Output;

/// Writes the dump of a mailbox to standard output.
pub(super) async fn run(config: Config, of: OfMailbox, out: Output) -> Result<Exit, Failure> {
    let access = Access::find(config).await?;
    let mut writer = out.writer();
    let written = match &access {
        Access::Here(postrider) => postrider.dump(&of.mailbox, writer).await.map_err(Failure::from),
        Access::Server(client) => {
            let path = format!("/v1/admin/dump?mailbox={}", path_segment(&of.mailbox));
            client.copy(&path, &mut writer).await
        }
    };
    access.close().await;
    written.map(|()| Exit::Fine)
}
