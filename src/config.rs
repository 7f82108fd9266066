//! Every setting with its unit, default and limit. Read from TOML by the program; a host of the
//! library fills the struct.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Model for searches by meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Embedding {
    /// None: words alone.
    Off,
    /// The static table.
    #[serde(rename = "static-128")]
    Static128,
    /// all-MiniLM-L6-v2.
    #[default]
    #[serde(rename = "minilm-l6")]
    MinilmL6,
    /// What lies in a folder.
    Folder,
    /// What answers at an address.
    Endpoint,
}

/// A model behind an address that speaks OpenAI's `/v1/embeddings`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointSettings {
    /// `http://host:port/v1` or `https://…`; `/embeddings` is added.
    pub url: String,
    /// Name of the model there.
    pub model: String,
    /// Length of its vectors, 1 to 4,096.
    pub dimensions: u32,
    /// Tokens of a text that it reads, 64 to 32,768. Default 512.
    #[serde(default = "tokens_default")]
    pub tokens_max: u32,
    /// Put before a query, as some models want it. Default nothing.
    #[serde(default)]
    pub query_prefix: String,
    /// Put before a passage. Default nothing.
    #[serde(default)]
    pub passage_prefix: String,
    /// Environment variable that holds the key, where one is wanted.
    #[serde(default)]
    pub key_env: Option<String>,
    /// File that holds the key.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Longest wait for the vectors of a batch, ms, 100 to 600,000. Default 30,000.
    #[serde(default = "wait_default")]
    pub wait_ms: u64,
    /// Requests for passages at once, 1 to 16. Default 2.
    #[serde(default = "at_once_default")]
    pub requests_at_once: u32,
    /// Texts it is given in a minute at most. Default no limit; queries are not held up.
    #[serde(default)]
    pub texts_per_minute: Option<u32>,
    /// Texts it is given in a day (UTC) at most. Default no limit.
    #[serde(default)]
    pub texts_per_day: Option<u32>,
    /// Further addresses of the same model, asked in order while those before fail.
    #[serde(default)]
    pub fallbacks: Vec<FallbackSettings>,
}

/// Another address of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FallbackSettings {
    /// As that of the first.
    pub url: String,
    /// Name of the model there. Default the same.
    #[serde(default)]
    pub model: Option<String>,
    /// Environment variable that holds the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// File that holds the key.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
}

/// Who ranks the first hits of a hybrid search again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rerank {
    /// Nobody.
    #[default]
    Off,
    /// A cross-encoder in a folder.
    Folder,
    /// What answers at an address.
    Endpoint,
}

/// How a reranker behind an address is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RerankForm {
    /// As Jina and Cohere do it, and llama.cpp and vLLM.
    #[default]
    Jina,
    /// As TEI does it.
    Tei,
}

/// A reranker behind an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RerankSettings {
    /// `http://host:port/v1` or `https://…`; `/rerank` is added.
    pub url: String,
    /// Name of the model there.
    pub model: String,
    /// How it is asked. Default `jina`.
    #[serde(default)]
    pub style: RerankForm,
    /// Environment variable that holds the key, where one is wanted.
    #[serde(default)]
    pub key_env: Option<String>,
    /// File that holds the key.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Longest wait for an answer, ms, 100 to 60,000. Default 1,500 (Pylota Mail search §9).
    #[serde(default = "rerank_wait_default")]
    pub wait_ms: u64,
}

fn rerank_wait_default() -> u64 {
    1_500
}

impl RerankSettings {
    fn is_in_range(&self) -> bool {
        (100..=60_000).contains(&self.wait_ms) && is_address(&self.url) && !self.model.is_empty()
    }
}

/// Mail that no model is ever given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NeverEmbed {
    /// Whole mailboxes, by name or identity.
    pub mailboxes: Vec<String>,
    /// What stands in one of these folders.
    pub folders: Vec<String>,
    /// What has one of these labels.
    pub labels: Vec<String>,
    /// These threads, `thr_…`.
    pub threads: Vec<String>,
}

fn tokens_default() -> u32 {
    512
}

fn wait_default() -> u64 {
    30_000
}

fn at_once_default() -> u32 {
    2
}

/// Whether an address is one that can be asked.
fn is_address(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    // A password in an address would be written down with it.
    rest.is_some_and(|rest| !rest.split('/').next().unwrap_or_default().contains('@'))
}

impl EndpointSettings {
    fn is_in_range(&self) -> bool {
        (1..=4_096).contains(&self.dimensions)
            && (64..=32_768).contains(&self.tokens_max)
            && (100..=600_000).contains(&self.wait_ms)
            && (1..=16).contains(&self.requests_at_once)
            && self.texts_per_minute != Some(0)
            && self.texts_per_day != Some(0)
            && is_address(&self.url)
            && self.fallbacks.iter().all(|fallback| is_address(&fallback.url))
            && !self.model.is_empty()
    }
}

/// Settings of one data directory and its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where everything is kept. Default: the platform's data directory, `postrider` below it.
    pub data_dir: PathBuf,
    /// Address of the HTTP door. Default: 127.0.0.1:7700. Anything but loopback is warned about.
    pub listen: SocketAddr,
    /// Further names under which a browser may address the server (Host check); default none.
    pub host_names: Vec<String>,
    /// Mailboxes kept open at once, 1 to 500. Default 200.
    pub open_mailboxes_max: usize,
    /// Text writers open at once, 1 to 8; each takes up to 150 MB while it writes. Default 2.
    pub text_writers_max: usize,
    /// Mail on its way between a door and the projections, bytes, at least 1 MiB. Default 32 MiB.
    pub ingest_budget_bytes: usize,
    /// Largest message taken in, bytes, at most 128 MiB. Default 64 MiB.
    pub message_bytes_max: usize,
    /// Time a search waits for acknowledged mail to become searchable, ms. Default 10,000.
    pub view_wait_ms: u64,
    /// Model for searches by meaning: `minilm-l6` (default), `static-128` (thousands of times faster,
    /// less exact), `folder`, `endpoint` or `off`. The first two come with the program.
    pub embedding: Embedding,
    /// Folder of a model as sentence-transformers or model2vec write it; for `folder`.
    pub embedding_folder: Option<PathBuf>,
    /// A model behind an address; for `endpoint`.
    pub embedding_endpoint: Option<EndpointSettings>,
    /// Who ranks the first hits of a hybrid search again: `off` (default), `folder` or `endpoint`.
    pub rerank: Rerank,
    /// Folder of a cross-encoder of the BERT or XLM-R family with one label; for `folder`.
    pub rerank_folder: Option<PathBuf>,
    /// A reranker behind an address; for `endpoint`.
    pub rerank_endpoint: Option<RerankSettings>,
    /// Share of the time in which a server computes vectors while some are missing, percent, 1 to
    /// 100; the rest it pauses. Default 100, on threads that give way to others.
    pub embedding_duty_percent: u32,
    /// Mail that no model is ever given, whatever else is set; found by its words as before.
    pub never_embed: NeverEmbed,
    /// IANA zone of the tenant made on first use. Default: the system's zone, else UTC.
    pub time_zone: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: default_data_dir(),
            listen: SocketAddr::from(([127, 0, 0, 1], 7_700)),
            host_names: Vec::new(),
            open_mailboxes_max: 200,
            text_writers_max: 2,
            ingest_budget_bytes: 32 << 20,
            message_bytes_max: 64 << 20,
            view_wait_ms: 10_000,
            embedding: Embedding::default(),
            embedding_folder: None,
            embedding_endpoint: None,
            rerank: Rerank::Off,
            rerank_folder: None,
            rerank_endpoint: None,
            embedding_duty_percent: 100,
            never_embed: NeverEmbed::default(),
            time_zone: jiff::tz::TimeZone::system()
                .iana_name()
                .map_or_else(|| "UTC".to_owned(), str::to_owned),
        }
    }
}

fn default_data_dir() -> PathBuf {
    directories::ProjectDirs::from("", "", "postrider")
        .map_or_else(|| PathBuf::from("postrider-data"), |dirs| dirs.data_dir().to_owned())
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not the TOML expected.
    #[error("{path}: {message}")]
    Parse {
        /// Which file.
        path: PathBuf,
        /// Place and reason.
        message: String,
    },
    /// A value is out of its range.
    #[error("{name} must be {allowed}")]
    Range {
        /// Which setting.
        name: &'static str,
        /// What is allowed.
        allowed: &'static str,
    },
}

impl Config {
    /// Reads a TOML file.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let config: Self = toml::from_str(&text)
            .map_err(|e| ConfigError::Parse { path: path.to_owned(), message: e.to_string() })?;
        config.validate()?;
        Ok(config)
    }

    /// Refuses values out of their ranges.
    ///
    /// # Errors
    /// [`ConfigError::Range`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        let checks = [
            ((1..=500).contains(&self.open_mailboxes_max), "open_mailboxes_max", "1 to 500"),
            ((1..=8).contains(&self.text_writers_max), "text_writers_max", "1 to 8"),
            (self.ingest_budget_bytes >= 1 << 20, "ingest_budget_bytes", "at least 1048576"),
            (
                (1..=128 << 20).contains(&self.message_bytes_max),
                "message_bytes_max",
                "1 to 134217728",
            ),
            (
                (1..=100).contains(&self.embedding_duty_percent),
                "embedding_duty_percent",
                "1 to 100",
            ),
            (
                jiff::tz::TimeZone::get(&self.time_zone).is_ok(),
                "time_zone",
                "an IANA zone name such as Europe/Berlin",
            ),
        ];
        let models = [
            (
                self.embedding != Embedding::Folder || self.embedding_folder.is_some(),
                "embedding_folder",
                "the folder of a model, for `embedding = \"folder\"`",
            ),
            (
                self.embedding != Embedding::Endpoint || self.embedding_endpoint.is_some(),
                "embedding_endpoint",
                "a table with url, model and dimensions, for `embedding = \"endpoint\"`",
            ),
            (
                self.embedding_endpoint.as_ref().is_none_or(EndpointSettings::is_in_range),
                "embedding_endpoint",
                "url http://… or https://… without a password (that is for key_env or key_file), model, \
                 dimensions 1 to 4096, tokens_max 64 to 32768, \
                 wait_ms 100 to 600000, requests_at_once 1 to 16, texts_per_minute and \
                 texts_per_day at least 1",
            ),
            (
                self.rerank != Rerank::Folder || self.rerank_folder.is_some(),
                "rerank_folder",
                "the folder of a cross-encoder, for `rerank = \"folder\"`",
            ),
            (
                self.rerank != Rerank::Endpoint || self.rerank_endpoint.is_some(),
                "rerank_endpoint",
                "a table with url and model, for `rerank = \"endpoint\"`",
            ),
            (
                self.rerank_endpoint.as_ref().is_none_or(RerankSettings::is_in_range),
                "rerank_endpoint",
                "url http://… or https://…, model, wait_ms 100 to 60000",
            ),
        ];
        for (holds, name, allowed) in checks.into_iter().chain(models) {
            if !holds {
                return Err(ConfigError::Range { name, allowed });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_out_of_range_settings_are_refused_by_name() {
        let dir = tempfile::tempdir().expect("temp dir");
        let path = dir.path().join("postrider.toml");
        for (text, expected) in [
            ("text_writers_max = 99", "text_writers_max must be 1 to 8"),
            ("time_zone = \"Mars/Base\"", "time_zone must be an IANA zone"),
            ("colour = 1", "unknown field `colour`"),
            ("embedding = \"folder\"", "embedding_folder must be the folder"),
            ("embedding = \"endpoint\"", "embedding_endpoint must be a table"),
            (
                "[embedding_endpoint]\nurl = \"ftp://x\"\nmodel = \"m\"\ndimensions = 3",
                "embedding_endpoint must be url http://",
            ),
        ] {
            std::fs::write(&path, text).expect("written");
            let error = Config::from_file(&path).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
        }
        std::fs::write(&path, "listen = \"127.0.0.1:9\"\n").expect("written");
        assert_eq!(Config::from_file(&path).expect("fine").listen.port(), 9);
    }
}
