//! Which endpoint is asked, for which model, with which limits.

use std::time::Duration;

use async_openai::config::Config as Address;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use stitch_session::config::{Config, EngineChoice};

use super::Key;
use crate::engine::EngineError;

/// OpenAI's own endpoint.
const OPENAI: &str = "https://api.openai.com/v1";
/// The variable that OpenAI's own libraries read the endpoint from.
const BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";

/// How long, how much and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One question, with all that is sent again.
    pub total: Duration,
    /// Until a connection stands.
    pub connect: Duration,
    /// Without a byte, once the answer has begun.
    pub idle: Duration,
    /// What follows the end of an answer: tokens used, the mark of the end.
    pub after_end: Duration,
    /// Bytes of one answer as it comes over the wire.
    pub bytes: usize,
    /// How often a question is sent again.
    pub retries: u32,
    /// Before it is sent again for the first time.
    pub first_delay: Duration,
    /// Before it is sent again for the last time.
    pub longest_delay: Duration,
    /// The longest wait that an endpoint may ask for; longer ones are cut to this.
    pub longest_asked_delay: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            total: Duration::from_secs(600),
            connect: Duration::from_secs(15),
            idle: Duration::from_secs(120),
            after_end: Duration::from_secs(2),
            bytes: 16 << 20,
            retries: 4,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(20),
            longest_asked_delay: Duration::from_secs(60),
        }
    }
}

/// An endpoint that speaks OpenAI's chat completions.
#[derive(Clone, Debug)]
pub struct Endpoint {
    base: Url,
    key: Option<Key>,
    /// The model; the only one that the endpoint has where it is `None`.
    pub model: Option<String>,
    /// How much chance there is in an answer; the endpoint's own measure where it is `None`.
    pub temperature: Option<f64>,
    /// Tokens of one answer; the endpoint's own limit where it is `None`.
    pub max_tokens: Option<u32>,
    /// How long, how much and how often.
    pub limits: Limits,
}

/// What plans and codes, once the settings have been looked at.
#[derive(Debug)]
pub struct Chosen {
    /// The endpoint to ask; `None` for the built-in rewrites.
    pub endpoint: Option<Endpoint>,
    /// Why, in a sentence.
    pub why: String,
}

impl Endpoint {
    /// The endpoint at `base`: `http://127.0.0.1:8000/v1`.
    ///
    /// # Errors
    /// It is no address of an endpoint.
    pub fn new(base: &str, key: Option<Key>) -> Result<Self, EngineError> {
        let wrong = |why: &str| {
            EngineError::Missing(format!(
                "The endpoint `{}` can't be used: {why}. Set `model.endpoint` to a base address like `http://127.0.0.1:8000/v1`.",
                without_login(base)
            ))
        };
        let mut url = Url::parse(base.trim()).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(wrong("it does not begin with `http://` or `https://` and a host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(
                "it holds a login, and settings get shared; put a key into `STITCHCUDA_API_KEY`",
            ));
        }
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/chat/completions").unwrap_or(path).to_owned();
        url.set_path(&path);
        url.set_fragment(None);
        Ok(Self {
            base: url,
            key,
            model: None,
            temperature: None,
            max_tokens: None,
            limits: Limits::default(),
        })
    }

    /// Its base address, for messages.
    pub fn address(&self) -> String {
        let mut url = self.base.clone();
        url.set_query(None);
        url.as_str().trim_end_matches('/').to_owned()
    }

    /// Whether it runs on this machine.
    pub fn is_local(&self) -> bool {
        // Of an IPv6 address, the brackets are part of the host.
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost"
            || host.ends_with(".localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// The key it is sent.
    pub fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// What plans and codes under `config`. `variable` tells the variables of the environment; `key` is one that the caller has, from an
    /// editor's secret store, and wins over those of the environment.
    ///
    /// # Errors
    /// A model is asked for, but no endpoint is configured, or the one that is can't be used.
    pub fn choose(
        config: &Config,
        variable: impl Fn(&str) -> Option<String>,
        key: Option<Key>,
    ) -> Result<Chosen, EngineError> {
        let builtin = |why: &str| Ok(Chosen { endpoint: None, why: why.to_owned() });
        let choice = config.optimize.engine;
        if choice == EngineChoice::Builtin {
            return builtin("`optimize.engine` is `builtin`.");
        }
        let key = key.or_else(|| Key::find(&variable));
        let from_variable = variable(BASE_URL_VARIABLE).filter(|base| !base.trim().is_empty());
        let settings = &config.model;
        let (base, why) = match (&settings.endpoint, from_variable, &key) {
            (Some(base), _, _) => (base.clone(), "`model.endpoint` is set.".to_owned()),
            (None, Some(base), _) => (base, format!("`{BASE_URL_VARIABLE}` is set.")),
            (None, None, Some(key)) if settings.name.is_some() || choice == EngineChoice::Llm => {
                (OPENAI.to_owned(), format!("There is a key in {}.", key.from()))
            }
            (None, None, Some(key)) => {
                return builtin(&format!(
                    "There is a key in {}, but `model.name` does not say which model is meant.",
                    key.from()
                ));
            }
            (None, None, None) if choice == EngineChoice::Llm => {
                return Err(EngineError::Missing(
                    "`optimize.engine` is `llm`, but there is no model to ask. Set `model.endpoint` to the base address of an \
                     OpenAI-compatible endpoint (`http://127.0.0.1:8000/v1`), or put a key into `STITCHCUDA_API_KEY` and set \
                     `model.name`. Without a model, set `optimize.engine` to `builtin`."
                        .to_owned(),
                ));
            }
            (None, None, None) => return builtin("No endpoint and no key is configured."),
        };
        let mut endpoint = Self::new(&base, key)?;
        endpoint.model =
            settings.name.as_ref().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        endpoint.temperature = settings.temperature;
        endpoint.max_tokens = settings.max_tokens;
        endpoint.limits.total = Duration::from_secs(settings.time_limit_seconds.into());
        Ok(Chosen { endpoint: Some(endpoint), why })
    }

    /// The same as async-openai wants it.
    ///
    /// # Errors
    /// The key can't be sent in a header.
    pub(super) fn wire(&self) -> Result<Wire, EngineError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.key {
            let value = format!("Bearer {}", key.secret().expose_secret());
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                EngineError::Missing(format!(
                    "The key in {} holds characters that can't be sent. Copy it again, without quotes and line ends.",
                    key.from()
                ))
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let secret = self.key.as_ref().map_or_else(|| SecretString::from(""), |key| key.secret().clone());
        Ok(Wire { base: self.base.clone(), headers, secret })
    }
}

/// The address without a name and a password in it.
fn without_login(base: &str) -> String {
    match (base.find("://"), base.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}://…{}", &base[..scheme], &base[at..]),
        _ => base.to_owned(),
    }
}

/// An endpoint in async-openai's terms. Its own configuration panics at keys that can't be sent, and marks none as secret.
#[derive(Clone)]
pub(super) struct Wire {
    base: Url,
    headers: HeaderMap,
    secret: SecretString,
}

impl Address for Wire {
    fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    fn url(&self, path: &str) -> String {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url.into()
    }

    fn query(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn api_base(&self) -> &str {
        self.base.as_str()
    }

    fn api_key(&self) -> &SecretString {
        &self.secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(engine: EngineChoice, settings: &[(&str, &str)], variables: &[(&str, &str)]) -> String {
        let mut config = Config::default();
        config.optimize.engine = engine;
        for (name, value) in settings {
            let value = Some((*value).to_owned());
            match *name {
                "endpoint" => config.model.endpoint = value,
                _ => config.model.name = value,
            }
        }
        let variable = |name: &str| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        };
        match Endpoint::choose(&config, variable, None) {
            Ok(Chosen { endpoint: Some(endpoint), why }) => {
                let key = endpoint.key().map_or("no key", |key| key.from()).to_owned();
                format!("{} ({key}): {why}", endpoint.address())
            }
            Ok(chosen) => format!("builtin: {}", chosen.why),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn a_model_is_asked_where_one_is_configured() {
        use EngineChoice::{Auto, Builtin, Llm};
        let key = ("OPENAI_API_KEY", "sk-0123456789");
        let local = ("endpoint", "http://localhost:8000/v1/");
        assert_eq!(choose(Auto, &[], &[]), "builtin: No endpoint and no key is configured.");
        assert_eq!(choose(Builtin, &[local], &[key]), "builtin: `optimize.engine` is `builtin`.");
        assert_eq!(
            choose(Auto, &[local], &[]),
            "http://localhost:8000/v1 (no key): `model.endpoint` is set."
        );
        assert_eq!(
            choose(Auto, &[], &[key]),
            "builtin: There is a key in OPENAI_API_KEY, but `model.name` does not say which model is meant."
        );
        assert_eq!(
            choose(Auto, &[("name", "m")], &[key, ("STITCHCUDA_API_KEY", "k")]),
            "https://api.openai.com/v1 (STITCHCUDA_API_KEY): There is a key in STITCHCUDA_API_KEY."
        );
        assert_eq!(
            choose(Auto, &[], &[("OPENAI_BASE_URL", "https://a.example/v1/chat/completions?api-version=1")]),
            "https://a.example/v1 (no key): `OPENAI_BASE_URL` is set."
        );
        assert!(
            choose(Llm, &[], &[])
                .starts_with("error: `optimize.engine` is `llm`, but there is no model to ask.")
        );
        let login = choose(Llm, &[("endpoint", "http://me:secret@host/v1")], &[]);
        assert!(login.contains("holds a login") && !login.contains("secret"), "{login}");
        for bad in ["", "localhost:8000", "ftp://x/v1", "/v1", "http://"] {
            let said = choose(Llm, &[("endpoint", bad)], &[]);
            assert!(said.contains("Set `model.endpoint` to a base address like"), "{bad}: {said}");
        }
    }

    #[test]
    fn paths_are_put_before_the_query() {
        let wire = Endpoint::new("https://a.example/x/?api-version=1", None).unwrap().wire().unwrap();
        assert_eq!(wire.url("/chat/completions"), "https://a.example/x/chat/completions?api-version=1");
        assert!(Endpoint::new("http://[::1]:1/v1", None).unwrap().is_local());
        assert!(!Endpoint::new("http://127.example/v1", None).unwrap().is_local());
    }
}
