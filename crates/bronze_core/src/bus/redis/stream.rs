//! The stream of bytes to a server: TCP, TLS over it, or a Unix socket.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use redis::{ConnectionAddr, ErrorKind, RedisError};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long a silent connection stands before the system asks the other side.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Any of them.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Opens streams to one server.
pub(super) struct Door<'a> {
    address: &'a ConnectionAddr,
    tls: Option<TlsConnector>,
}

impl<'a> Door<'a> {
    /// Reads the system's certificates where the server is spoken to by TLS.
    pub(super) fn new(address: &'a ConnectionAddr) -> Result<Self, RedisError> {
        let tls = match address {
            ConnectionAddr::TcpTls { insecure: false, .. } => Some(tls_connector()?),
            ConnectionAddr::TcpTls { .. } => {
                let refusal = "TLS is not spoken to servers whose certificate is not checked";
                return Err((ErrorKind::InvalidClientConfig, refusal).into());
            }
            _ => None,
        };
        Ok(Self { address, tls })
    }

    /// A new stream; nothing was said on it yet.
    pub(super) async fn open(&self) -> Result<Box<dyn Stream>, RedisError> {
        match (self.address, &self.tls) {
            (ConnectionAddr::Tcp(host, port), _) => Ok(Box::new(tcp(host, *port).await?)),
            (ConnectionAddr::TcpTls { host, port, .. }, Some(tls)) => {
                let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                Ok(Box::new(tls.connect(name, tcp(host, *port).await?).await?))
            }
            #[cfg(unix)]
            (ConnectionAddr::Unix(path), _) => {
                Ok(Box::new(tokio::net::UnixStream::connect(path).await?))
            }
            _ => {
                Err((ErrorKind::InvalidClientConfig, "no address that can be connected to").into())
            }
        }
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
}

fn tls_connector() -> Result<TlsConnector, RedisError> {
    let mut found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // One that cannot be read is no reason to do without all others.
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        let none = || io::Error::other("the system has no certificate that can be read");
        return Err(found.errors.pop().map_or_else(none, io::Error::other).into());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// A stream that is lent to somebody who keeps what he is given, and taken back.
#[derive(Clone)]
pub(super) struct Lent(Arc<Mutex<Option<Box<dyn Stream>>>>);

impl Lent {
    pub(super) fn new(stream: Box<dyn Stream>) -> Self {
        Self(Arc::new(Mutex::new(Some(stream))))
    }

    /// Takes the stream back; whoever has it finds it at its end from now on.
    pub(super) fn take_back(&self) -> Option<Box<dyn Stream>> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<dyn Stream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll<T>(
        &self,
        poll: impl FnOnce(Pin<&mut dyn Stream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match self.lock().as_deref_mut() {
            Some(stream) => poll(Pin::new(stream)),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncRead for Lent {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for Lent {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(|stream| stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_shutdown(context))
    }
}
