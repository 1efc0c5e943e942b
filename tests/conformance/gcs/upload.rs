//! A resumable upload, as Google's clients make it: the retry layer repeats what may be repeated as it is, and after a
//! failure in the middle of the data the client asks how much arrived, and goes on from there.

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use redial::RequestOptions;
use tower::{Service, ServiceExt};

use super::{Client, operations, testbench::TEST_ID};

/// A failed upload asks for the state at the most so often.
const RESUMED: usize = 5;

/// Uploads an object; `Err` says why not.
pub async fn upload(client: &Client, authority: &str, id: &str, object: Bytes) -> Result<(), String> {
    let session = Session { client, id, address: begin(client, authority, id).await?, object };
    let mut sent = 0;
    for _ in 0..RESUMED {
        match session.send_from(sent).await {
            Ok(answer) if answer.status() == 200 => return Ok(()),
            Ok(answer) if answer.status() == 308 || answer.status() == 408 || answer.status().is_server_error() => {}
            Ok(answer) => return Err(format!("answered {}", answer.status())),
            Err(error) if error.fault().is_some_and(|fault| !fault.is_permanent()) => {}
            Err(error) => return Err(error.to_string()),
        }
        let state = session.state().await.map_err(|error| error.to_string())?;
        match state.status().as_u16() {
            200 => return Ok(()),
            308 => sent = stored(&state),
            status => return Err(format!("the state was answered {status}")),
        }
    }
    Err("resumed too often".to_owned())
}

/// Asks for a session: conditional, so that the layer may repeat it.
async fn begin(client: &Client, authority: &str, id: &str) -> Result<String, String> {
    let insert = operations::find("storage.objects.insert");
    let target = insert.target(true).replace("uploadType=media", "uploadType=resumable");
    let request = Request::builder().method(insert.method()).uri(format!("http://{authority}{target}"));
    let request = request.header(TEST_ID, id).body(Full::default()).expect("a request");
    let answer = client.clone().oneshot(request).await.map_err(|error| error.to_string())?;
    let location = answer.headers().get(header::LOCATION).ok_or(format!("no session: {}", answer.status()))?;
    Ok(location.to_str().expect("an address").to_owned())
}

struct Session<'a> {
    client: &'a Client,
    id: &'a str,
    address: String,
    object: Bytes,
}

impl Session<'_> {
    /// All that is left. Never repeated as it is: what arrived of it need not be sent again.
    async fn send_from(&self, first: usize) -> Result<Response<redial::AnswerBody<Incoming>>, redial::Error> {
        let (last, total) = (self.object.len() - 1, self.object.len());
        let mut request = self.put(format!("bytes {first}-{last}/{total}"), self.object.slice(first..));
        request.extensions_mut().insert(RequestOptions::new().never_retry());
        self.call(request).await
    }

    /// How much has arrived. It changes nothing, so the layer repeats it.
    async fn state(&self) -> Result<Response<redial::AnswerBody<Incoming>>, redial::Error> {
        self.call(self.put(format!("bytes */{}", self.object.len()), Bytes::new())).await
    }

    fn put(&self, range: String, body: Bytes) -> Request<Full<Bytes>> {
        let request = Request::put(&self.address).header(header::CONTENT_RANGE, range).header(TEST_ID, self.id);
        request.body(Full::new(body)).expect("a request")
    }

    async fn call(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<redial::AnswerBody<Incoming>>, redial::Error> {
        self.client.clone().ready().await?.call(request).await
    }
}

/// `Range: bytes=0-99`: so many bytes are stored. Without it, none.
fn stored(state: &Response<redial::AnswerBody<Incoming>>) -> usize {
    state.headers().get(header::RANGE).map_or(0, |range| {
        let last = range.to_str().ok().and_then(|range| range.strip_prefix("bytes=0-")?.parse::<usize>().ok());
        last.expect("a range") + 1
    })
}
