//! The Host check: a page in a browser that was led to this address under a name of its own
//! (DNS rebinding), or that posts here from elsewhere, is refused.
//!
//! Allowed are `localhost`, loopback addresses, the address listened on, and `host_names` of the
//! settings. Where a browser says from which page a request comes (Origin), that page must be of
//! an allowed host too. Ports do not matter.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, header};
use axum::middleware::Next;
use axum::response::Response;

use super::refusal::Refusal;
use super::routes::Shared;

/// Names under which this server may be addressed.
#[derive(Debug, Clone)]
pub(super) struct Hosts {
    listen: IpAddr,
    names: Vec<String>,
}

impl Hosts {
    /// The names of the settings, and the address listened on.
    pub(super) fn new(listen: SocketAddr, names: &[String]) -> Self {
        Self {
            listen: listen.ip(),
            names: names.iter().map(|n| normal(n).to_lowercase()).collect(),
        }
    }

    /// Whether `authority` (`host`, `host:port`, `[v6]:port`) is one of them.
    fn allows(&self, authority: &str) -> bool {
        let Some(host) = host_of(authority) else { return false };
        let host = normal(host).to_lowercase();
        match host.parse::<IpAddr>() {
            Ok(ip) if ip.is_loopback() || ip == self.listen => true,
            _ => host == "localhost" || self.names.contains(&host),
        }
    }
}

fn normal(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

fn host_of(authority: &str) -> Option<&str> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(v6) => v6.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = rest.strip_prefix(':').unwrap_or(rest);
    port.bytes().all(|b| b.is_ascii_digit()).then_some(host)
}

/// The only value of a header; `None` when there is none, an error when there are several.
fn only(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        _ => Err(()),
    }
}

fn check(hosts: &Hosts, request: &Request) -> Result<(), Refusal> {
    let host = only(request.headers(), header::HOST).ok().flatten();
    let target = request.uri().authority().map(axum::http::uri::Authority::as_str);
    if !host.is_some_and(|h| hosts.allows(h)) || !target.is_none_or(|t| hosts.allows(t)) {
        return Err(Refusal::new(
            "host_denied",
            "the Host header names no host of this server",
            "use localhost, or add the name to host_names in the settings",
        ));
    }
    let page = only(request.headers(), header::ORIGIN);
    let own = |origin: &str| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some_and(|a| hosts.allows(a))
    };
    match page {
        Ok(None) => Ok(()),
        Ok(Some(origin)) if own(origin) => Ok(()),
        _ => Err(Refusal::new(
            "origin_denied",
            "the request comes from a page of another host",
            "pages of other hosts cannot use this server",
        )),
    }
}

/// See the module.
pub(super) async fn layer(
    State(shared): State<Shared>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    check(&shared.hosts, &request)?;
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_are_allowed() {
        let names = ["Mail.Example.".to_owned()];
        let hosts = Hosts::new(SocketAddr::from(([192, 0, 2, 7], 80)), &names);
        for good in [
            "localhost",
            "LOCALHOST:7700",
            "localhost.",
            "127.0.0.1:1",
            "127.8.8.8",
            "[::1]:7700",
            "192.0.2.7:80",
            "mail.example",
            "mail.example.:443",
            "localhost:",
        ] {
            assert!(hosts.allows(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[::1",
            "192.0.2.8",
            "localhost:80@evil.example",
            "[::1].evil.example",
        ] {
            assert!(!hosts.allows(bad), "{bad}");
        }
    }
}
