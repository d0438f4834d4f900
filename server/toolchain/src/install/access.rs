//! How the index is reached: the proxy, certificates and credentials that pip would use.
//!
//! pip reports addresses without credentials. They are taken from where pip takes them: the index addresses of its
//! configuration (which may hold a name and password) and `~/.netrc`. A keyring is not asked.

use std::path::{Path, PathBuf};

use reqwest::{Certificate, Client, Proxy, Url};

use super::InstallError;
use crate::environment::Environment;

/// Variables that name a file with certificates, as requests, curl and OpenSSL have them.
const CERTIFICATE_VARIABLES: &[&str] = &["PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"];

/// The settings under which wheels are fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// A proxy set for pip; else the environment's proxies count.
    pub proxy: Option<String>,
    /// Files with certificates to trust beside the system's.
    pub certificates: Vec<PathBuf>,
    /// Addresses of indexes that hold a name and password.
    pub indexes: Vec<String>,
    /// Hosts whose certificate is not checked, because the person told pip so.
    pub trusted_hosts: Vec<String>,
    /// The netrc file.
    pub netrc: Option<PathBuf>,
}

impl Access {
    /// From what `pip config list` prints (`global.index-url='…'`, `:env:.proxy='…'`) and the environment.
    pub fn from_pip(listed: &str, environment: &Environment) -> Self {
        let mut access = Self::default();
        for line in listed.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            let value = value.trim().trim_matches(|c| c == '\'' || c == '"').replace("\\n", "\n");
            let from_variable = key.starts_with(":env:");
            match key.rsplit('.').next().unwrap_or_default() {
                "proxy" if from_variable || access.proxy.is_none() => access.proxy = Some(value),
                "cert" => access.certificates.push(PathBuf::from(value)),
                "index-url" | "extra-index-url" | "find-links" => {
                    access
                        .indexes
                        .extend(value.split_whitespace().filter(|url| url.contains('@')).map(String::from));
                }
                "trusted-host" => access.trusted_hosts.extend(value.split_whitespace().map(String::from)),
                _ => {}
            }
        }
        let variables = CERTIFICATE_VARIABLES.iter().filter_map(|name| environment.path(name));
        access.certificates.extend(variables);
        access.certificates.sort();
        access.certificates.dedup();
        let netrc = environment.path("NETRC").or_else(|| environment.home().map(|home| home.join(".netrc")));
        access.netrc = netrc.filter(|path| path.is_file());
        access
    }

    /// A client for these settings. Certificates of untrusted hosts are never accepted by it.
    pub(super) fn client(&self) -> Result<Client, InstallError> {
        self.build(false)
    }

    /// A client that checks no certificate. What it fetches is checked by its hash, which pip had from the index.
    fn unchecked_client(&self) -> Result<Client, InstallError> {
        self.build(true)
    }

    fn build(&self, unchecked: bool) -> Result<Client, InstallError> {
        let problem = |text: String| InstallError::BadIndex { problem: text };
        let mut builder = Client::builder()
            .user_agent(concat!("stitchcuda/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(std::time::Duration::from_secs(30))
            .read_timeout(std::time::Duration::from_secs(60))
            .tls_certs_merge(self.certificates());
        if let Some(proxy) = &self.proxy {
            let address = if proxy.contains("://") { proxy.clone() } else { format!("http://{proxy}") };
            let proxy = Proxy::all(address).map_err(|error| {
                problem(format!("the proxy in pip's configuration is no address: {error}"))
            })?;
            builder = builder.proxy(proxy);
        }
        if unchecked {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        builder.build().map_err(|error| problem(format!("a connection can't be set up: {}", chain(&error))))
    }

    fn certificates(&self) -> Vec<Certificate> {
        let read = |path: &PathBuf| -> Vec<Certificate> {
            let bytes = std::fs::read(path).unwrap_or_default();
            Certificate::from_pem_bundle(&bytes).unwrap_or_else(|error| {
                tracing::warn!("The certificates in {} can't be read: {error}.", path.display());
                Vec::new()
            })
        };
        self.certificates.iter().flat_map(read).collect()
    }

    /// The client to use for an address, if it is not the usual one.
    pub(super) fn special_client(&self, url: &Url) -> Result<Option<Client>, InstallError> {
        let host = url.host_str().unwrap_or_default();
        let with_port = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        let is_trusted = self.trusted_hosts.iter().any(|trusted| trusted == host || *trusted == with_port);
        if is_trusted && url.scheme() == "https" { self.unchecked_client().map(Some) } else { Ok(None) }
    }

    /// The address with the credentials for its host, as reqwest takes them.
    pub(super) fn with_credentials(&self, mut url: Url) -> Url {
        if !url.username().is_empty() || url.scheme() == "file" {
            return url;
        }
        let same_place = |index: &Url| {
            index.host() == url.host() && index.port_or_known_default() == url.port_or_known_default()
        };
        let index = self.indexes.iter().filter_map(|index| Url::parse(index).ok()).find(same_place);
        let found = match index {
            Some(index) => {
                Some((index.username().to_string(), index.password().unwrap_or_default().to_string()))
            }
            None => self.netrc.as_deref().and_then(|path| netrc_entry(path, url.host_str()?)),
        };
        if let Some((name, password)) = found {
            // Neither fails for an address with a host, which a found one has.
            let _ = url.set_username(&name);
            let _ = url.set_password(Some(&password));
        }
        url
    }
}

/// The name and password for a host in a netrc file. Source: the manual page netrc(5).
fn netrc_entry(path: &Path, host: &str) -> Option<(String, String)> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut words =
        text.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(str::split_whitespace);
    let (mut matches, mut name, mut password) = (false, None, None);
    while let Some(word) = words.next() {
        match word {
            "machine" | "default" => {
                if matches && name.is_some() {
                    break;
                }
                matches = word == "default" || words.next() == Some(host);
                (name, password) = (None, None);
            }
            "login" => name = words.next().map(String::from),
            "password" => password = words.next().map(String::from),
            _ => {}
        }
    }
    if matches { Some((name?, password.unwrap_or_default())) } else { None }
}

/// An error with its causes, without the address (which may hold a password).
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = match error.downcast_ref::<reqwest::Error>() {
            Some(request) if request.url().is_some() => {
                if request.is_timeout() {
                    "the connection timed out".into()
                } else {
                    "the request failed".into()
                }
            }
            _ => error.to_string(),
        };
        if !parts.contains(&text) {
            parts.push(text);
        }
        next = error.source();
    }
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_credentials_are_taken_as_pip_takes_them() {
        let folder = tempfile::tempdir().unwrap();
        let netrc = folder.path().join(".netrc");
        std::fs::write(
            &netrc,
            "# machine c.test login no\nmachine a.test login u password p\ndefault login d password e\n",
        )
        .unwrap();
        let listed = "global.index-url='https://me:s%40cret@mirror.test/simple'\nglobal.proxy='http://one.test:1'\n\
                      :env:.proxy='two.test:3128'\nglobal.cert='/ca.pem'\nglobal.extra-index-url='\\nhttps://x.test/\\nhttps://y:z@y.test:8443/'\n\
                      global.trusted-host='mirror.test'\nnonsense\n";
        let environment = Environment::from_variables([
            ("HOME", folder.path().as_os_str()),
            ("REQUESTS_CA_BUNDLE", "/ca.pem".as_ref()),
        ]);
        let access = Access::from_pip(listed, &environment);
        assert_eq!(access.proxy.as_deref(), Some("two.test:3128"));
        assert_eq!(access.certificates, [PathBuf::from("/ca.pem")]);
        let with = |url: &str| access.with_credentials(Url::parse(url).unwrap()).to_string();
        assert_eq!(with("https://mirror.test/f.whl"), "https://me:s%40cret@mirror.test/f.whl");
        assert_eq!(with("https://y.test:8443/f.whl"), "https://y:z@y.test:8443/f.whl");
        assert_eq!(with("https://a.test/f.whl"), "https://u:p@a.test/f.whl");
        assert_eq!(with("https://b.test/f.whl"), "https://d:e@b.test/f.whl");
        assert_eq!(with("https://own:1@mirror.test/f.whl"), "https://own:1@mirror.test/f.whl");
        assert!(access.special_client(&Url::parse("https://mirror.test/f").unwrap()).unwrap().is_some());
        assert!(access.special_client(&Url::parse("https://other.test/f").unwrap()).unwrap().is_none());
    }
}
