//! Connections to exchanges, over WebSocket and HTTP, with TLS as everywhere else here.

use std::sync::{Arc, OnceLock};

use reqwest::{Client, Url};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::fault::Fault;
use crate::client::{is_loopback, tls};

const USER_AGENT: &str = concat!("tardis-fast/", env!("CARGO_PKG_VERSION"));
/// No exchange sends messages longer than this.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// A connection that frames are sent over.
pub(super) type Socket = WebSocketStream<Box<dyn Duplex>>;

/// A plain connection, or one under TLS.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// What the connections of a session share.
#[derive(Debug, Default)]
pub(super) struct Network {
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Network {
    /// Connects a WebSocket.
    pub(super) async fn socket(&self, address: &str) -> Result<Socket, Fault> {
        let at = |error: &dyn std::fmt::Display| Fault::connect(format!("{address}: {error}"));
        let url = Url::parse(address).map_err(|error| at(&error))?;
        let host = url.host_str().ok_or_else(|| at(&"it has no host"))?;
        let port = url.port_or_known_default().ok_or_else(|| at(&"it has no port"))?;
        let host = host.trim_matches(['[', ']']);
        let tcp = TcpStream::connect((host, port)).await.map_err(|error| at(&error))?;
        tcp.set_nodelay(true).map_err(|error| at(&error))?;
        let stream: Box<dyn Duplex> = if url.scheme() == "wss" {
            let name = ServerName::try_from(host.to_owned()).map_err(|error| at(&error))?;
            let connector = TlsConnector::from(self.tls().map_err(|error| at(&error))?);
            Box::new(connector.connect(name, tcp).await.map_err(|error| at(&error))?)
        } else {
            Box::new(tcp)
        };
        let mut request = address.into_client_request().map_err(|error| at(&error))?;
        request.headers_mut().insert("user-agent", HeaderValue::from_static(USER_AGENT));
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES))
            // Each message leaves at once.
            .write_buffer_size(0);
        match client_async_with_config(request, stream, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(error) => Err(Fault::socket(error, address)),
        }
    }

    /// A client for questions to `address`.
    pub(super) fn http(&self, address: &str) -> Result<Client, Fault> {
        let at = |error: &dyn std::fmt::Display| Fault::connect(format!("{address}: {error}"));
        let url = Url::parse(address).map_err(|error| at(&error))?;
        let tls = match self.tls() {
            Ok(tls) => (*tls).clone(),
            Err(_) if url.scheme() == "http" => tls(false).map_err(|error| at(&error))?,
            Err(error) => return Err(at(&error)),
        };
        let mut builder = Client::builder().tls_backend_preconfigured(tls).user_agent(USER_AGENT);
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        builder.build().map_err(|error| at(&error))
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, String> {
        self.tls.get_or_init(|| tls(true).map(Arc::new).map_err(|error| error.to_string())).clone()
    }
}
