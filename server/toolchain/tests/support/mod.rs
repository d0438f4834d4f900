//! A small HTTP server that misbehaves as told, pretended wheels, and a resolver that knows them.

use std::collections::HashMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use sha2::{Digest, Sha256};
use stitch_toolchain::install::{Access, InstallError, Report, Resolver, Wheel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// How the server answers GET requests for one file.
#[derive(Clone, Default)]
pub struct Manners {
    /// Statuses for the first requests, with further header lines.
    pub refusals: Vec<(u16, &'static str)>,
    /// Each answer is cut after so many bytes of its body.
    pub cut_after: Option<usize>,
    /// Ranges are ignored.
    pub no_ranges: bool,
    /// The first so many answers have a wrong byte.
    pub corrupt: usize,
    /// A pause after each so many bytes.
    pub slow: Option<(usize, Duration)>,
}

#[derive(Default)]
struct State {
    files: HashMap<String, (Vec<u8>, Manners)>,
    requests: Vec<(String, String, u64)>,
}

pub struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state: Arc<Mutex<State>> = Arc::default();
        tokio::spawn({
            let state = Arc::clone(&state);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(answer(stream, Arc::clone(&state)));
                }
            }
        });
        Self { address, state }
    }

    pub fn put(&self, name: &str, bytes: Vec<u8>, manners: Manners) -> String {
        self.state.lock().unwrap().files.insert(format!("/{name}"), (bytes, manners));
        format!("http://{}/{name}", self.address)
    }

    pub fn manners(&self, name: &str, manners: Manners) {
        self.state.lock().unwrap().files.get_mut(&format!("/{name}")).unwrap().1 = manners;
    }

    /// Where each GET request for a file began.
    pub fn starts(&self, name: &str) -> Vec<u64> {
        let state = self.state.lock().unwrap();
        let of_file =
            state.requests.iter().filter(|(method, path, _)| method == "GET" && *path == format!("/{name}"));
        of_file.map(|(_, _, start)| *start).collect()
    }
}

async fn answer(mut stream: TcpStream, state: Arc<Mutex<State>>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.split_whitespace();
    let (method, path) = (words.next()?.to_string(), words.next()?.to_string());
    let range = head.lines().find_map(|line| {
        line.to_ascii_lowercase().strip_prefix("range: bytes=")?.split('-').next()?.parse::<u64>().ok()
    });
    let (mut bytes, manners, number) = {
        let mut state = state.lock().unwrap();
        let number = state.requests.iter().filter(|(m, p, _)| m == "GET" && *p == path).count();
        state.requests.push((method.clone(), path.clone(), range.unwrap_or(0)));
        match state.files.get(&path) {
            Some((bytes, manners)) => (bytes.clone(), manners.clone(), number),
            None => (Vec::new(), Manners { refusals: vec![(404, ""); 100], ..Manners::default() }, number),
        }
    };
    if method == "GET"
        && let Some((status, lines)) = manners.refusals.get(number)
    {
        stream
            .write_all(
                format!("HTTP/1.1 {status} No\r\n{lines}Content-Length: 0\r\nConnection: close\r\n\r\n")
                    .as_bytes(),
            )
            .await
            .ok()?;
        return None;
    }
    if number < manners.corrupt
        && let Some(byte) = bytes.last_mut()
    {
        *byte ^= 1;
    }
    let whole = bytes.len();
    let start = range.filter(|_| !manners.no_ranges).unwrap_or(0) as usize;
    let status = match range {
        Some(_) if manners.no_ranges => "200 OK".to_string(),
        Some(_) if start >= whole => {
            let text = format!(
                "HTTP/1.1 416 No\r\nContent-Range: bytes */{whole}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(text.as_bytes()).await.ok()?;
            return None;
        }
        Some(_) => format!("206 Partial Content\r\nContent-Range: bytes {start}-{}/{whole}", whole - 1),
        None => "200 OK".to_string(),
    };
    let body = &bytes[start..];
    stream
        .write_all(
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())
                .as_bytes(),
        )
        .await
        .ok()?;
    if method == "HEAD" {
        return None;
    }
    let body = &body[..manners.cut_after.unwrap_or(body.len()).min(body.len())];
    match manners.slow {
        None => stream.write_all(body).await.ok()?,
        Some((size, pause)) => {
            for chunk in body.chunks(size) {
                stream.write_all(chunk).await.ok()?;
                stream.flush().await.ok()?;
                tokio::time::sleep(pause).await;
            }
        }
    }
    stream.shutdown().await.ok()
}

/// A wheel of these files: name, content, mode.
pub fn archive(files: &[(&str, &[u8], u32)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content, mode) in files {
        let options = zip::write::SimpleFileOptions::default().unix_permissions(*mode);
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A wheel with a symbolic link.
pub fn archive_with_link(name: &str, target: &str) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    writer.add_symlink(name, target, zip::write::SimpleFileOptions::default()).unwrap();
    writer.finish().unwrap().into_inner()
}

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes that don't compress.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..length.div_ceil(8)).flat_map(|_| next()).take(length).collect()
}

/// The parts of a release that is enough for an installation, by extra: package and archive. The large one is `nvvm`.
pub fn parts_of(version: &str) -> Vec<(&'static str, String, Vec<u8>)> {
    let nvcc = format!("#!/bin/sh\necho 'Cuda compilation tools, release {version}, V{version}.1'\n");
    let number = version
        .split_once('.')
        .map(|(major, minor)| major.parse::<u32>().unwrap() * 1000 + minor.parse::<u32>().unwrap() * 10);
    let header = format!("#define CUDART_VERSION {}\n", number.unwrap());
    let tool: &[u8] = b"#!/bin/sh\n";
    let noise = noise(400_000);
    let top = format!("nvidia/cu{}", version.split('.').next().unwrap());
    let at = |place: &str| format!("{top}/{place}");
    let build = |files: &[(&str, &[u8], u32)]| {
        let named: Vec<_> = files.iter().map(|(place, content, mode)| (at(place), *content, *mode)).collect();
        let mut all: Vec<_> =
            named.iter().map(|(place, content, mode)| (place.as_str(), *content, *mode)).collect();
        all.push(("part.dist-info/licenses/License.txt", b"terms", 0o644));
        archive(&all)
    };
    vec![
        (
            "nvcc",
            "nvidia-cuda-nvcc".into(),
            build(&[
                ("bin/nvcc", nvcc.as_bytes(), 0o744),
                ("bin/ptxas", b"\x7fELF", 0),
                ("bin/cudafe++", tool, 0o755),
                ("bin/fatbinary", tool, 0o755),
                ("bin/nvcc.profile", b"TOP = .", 0o644),
            ]),
        ),
        ("crt", "nvidia-cuda-crt".into(), build(&[("include/crt/host_config.h", b"", 0o644)])),
        ("nvvm", "nvidia-nvvm".into(), build(&[("nvvm/bin/cicc", noise.as_slice(), 0o755)])),
        (
            "cudart",
            "nvidia-cuda-runtime".into(),
            build(&[
                ("include/cuda_runtime.h", b"", 0o644),
                ("include/cuda_runtime_api.h", header.as_bytes(), 0o644),
                (&format!("lib/libcudart.so.{}", &version[..2]), b"x", 0o644),
            ]),
        ),
        ("cccl", "nvidia-cuda-cccl".into(), build(&[("include/cccl/a.h", b"", 0o644)])),
    ]
}

/// Knows the releases that were published on a server.
#[derive(Clone, Default)]
pub struct Index {
    wheels: Arc<Mutex<HashMap<String, Wheel>>>,
}

impl Index {
    /// Publishes a release: each part is a file `PACKAGE-VERSION.whl` on the server.
    pub fn publish(&self, server: &Server, version: &str, parts: Vec<(&'static str, String, Vec<u8>)>) {
        let mut requires = Vec::new();
        let mut wheels = self.wheels.lock().unwrap();
        for (extra, package, bytes) in parts {
            let requirement = format!("{package}=={version}.1.*");
            requires.push(format!("{requirement}; (sys_platform == 'linux') and extra == '{extra}'"));
            let sha256 = sha256(&bytes);
            let url = server.put(&format!("{package}-{version}.whl"), bytes, Manners::default());
            let wheel =
                Wheel { name: package, version: format!("{version}.1"), url, sha256, requires: Vec::new() };
            wheels.insert(requirement, wheel);
        }
        let whole = Wheel {
            name: "cuda-toolkit".into(),
            version: format!("{version}.0"),
            url: String::new(),
            sha256: String::new(),
            requires,
        };
        for requirement in
            ["cuda-toolkit".to_string(), "cuda-toolkit==13.*".into(), format!("cuda-toolkit=={version}.*")]
        {
            wheels.insert(requirement, whole.clone());
        }
    }

    /// Changes one published wheel.
    pub fn change(&self, package: &str, change: impl Fn(&mut Wheel)) {
        let mut wheels = self.wheels.lock().unwrap();
        wheels.values_mut().filter(|wheel| wheel.name == package).for_each(change);
    }
}

impl Resolver for Index {
    fn resolve<'a>(
        &'a self,
        requirements: &'a [String],
        _report: Report<'a>,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Wheel>, InstallError>> {
        async move {
            let wheels = self.wheels.lock().unwrap();
            let find = |requirement: &String| {
                wheels.get(requirement).cloned().ok_or_else(|| InstallError::NotFound {
                    requirement: requirement.clone(),
                    advice: String::new(),
                    said: String::new(),
                })
            };
            requirements.iter().map(find).collect()
        }
        .boxed()
    }

    fn access<'a>(&'a self, _cancel: &'a CancellationToken) -> BoxFuture<'a, Access> {
        async { Access::default() }.boxed()
    }
}
