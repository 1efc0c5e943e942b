//! One connection of HTTP/2: `h2` speaks, and what it cannot say is sent between its frames.

use std::{
    future, io,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use h2::{
    RecvStream, SendStream,
    server::{Builder, Connection, SendResponse},
};
use http::{Method, Response, header, request::Parts};
use tokio::{
    net::TcpStream,
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    answer::{Answer, Part},
    http1::{Framing, bodiless},
    record::{Arrival, Record},
    reply::{Reply, Then, What},
    script::Player,
    server,
    wire::{Wire, frame},
};

/// What a stream asks of its connection.
enum Order {
    /// Send this frame, and say when that is done.
    Send(Vec<u8>, oneshot::Sender<()>),
    Close,
    Reset,
}

enum End {
    Gone,
    Close,
    Reset,
}

pub(super) async fn run(stream: TcpStream, number: usize, player: Player, record: Record) -> io::Result<()> {
    let wire = Wire::new(stream);
    let mut builder = Builder::new();
    if let Some(streams) = player.script().max_streams {
        builder.max_concurrent_streams(streams);
    }
    let connection = builder.handshake(wire.clone()).await.map_err(io::Error::other)?;
    let end = serve(connection, &wire, number, player, record).await?;
    let Some(mut stream) = wire.into_stream() else { return Ok(()) };
    match end {
        End::Gone => Ok(()),
        End::Close => server::close(&mut stream).await,
        End::Reset => server::reset(&stream),
    }
}

async fn serve(
    mut connection: Connection<Wire, Bytes>,
    wire: &Wire,
    number: usize,
    player: Player,
    record: Record,
) -> io::Result<End> {
    let (orders, mut taken) = mpsc::unbounded_channel();
    let mut close_on_reuse = false;
    // Dropped with this connection.
    let mut streams = JoinSet::new();
    loop {
        // Once all that the streams have said is written.
        let ordered = future::poll_fn(|cx| if wire.is_blocked() { Poll::Pending } else { taken.poll_recv(cx) });
        tokio::select! {
            // In this order: what the streams have said is sent before the connection does what they order.
            biased;
            accepted = connection.accept() => {
                let Some(Ok((request, respond))) = accepted else { return Ok(End::Gone) };
                if close_on_reuse {
                    return Ok(End::Close);
                }
                let (head, body) = request.into_parts();
                let arrival = record.arrived(number, &head);
                let Some(reply) = player.next(&head.method, head.uri.path()).cloned() else {
                    record.change(|seen| seen.surplus += 1);
                    return Ok(End::Close);
                };
                close_on_reuse = reply.then == Then::CloseOnReuse;
                let id = respond.stream_id().as_u32();
                let stream = Stream { id, reply, head, arrival, orders: orders.clone() };
                streams.spawn(async move {
                    // The client may reset it or be gone.
                    let _ = stream.serve(body, respond).await;
                });
            }
            Some(order) = ordered => match order {
                Order::Send(frame, done) => {
                    wire.inject(&frame).await?;
                    let _ = done.send(());
                }
                Order::Close => return Ok(End::Close),
                Order::Reset => return Ok(End::Reset),
            },
        }
    }
}

/// One request, and its reply.
struct Stream {
    id: u32,
    reply: Reply,
    head: Parts,
    arrival: Arrival,
    orders: mpsc::UnboundedSender<Order>,
}

/// An error: the client has given the stream up.
type Step<T = ()> = Result<T, h2::Error>;

impl Stream {
    async fn serve(mut self, mut body: RecvStream, mut respond: SendResponse<Bytes>) -> Step {
        let early = self.reply.early;
        if !early {
            self.read(&mut body).await?;
        }
        wait(self.reply.after, &mut respond).await?;
        if let Some((last, reason)) = self.reply.goaway {
            self.send(frame::goaway(last.id(self.id), reason.code())).await;
        }
        self.act(respond).await?;
        self.arrival.over();
        if self.reply.then == Then::Close {
            return self.end(Order::Close).await;
        }
        if early {
            self.read(&mut body).await?;
        }
        Ok(())
    }

    async fn read(&mut self, body: &mut RecvStream) -> Step {
        while let Some(data) = body.data().await {
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            self.arrival.data(data);
        }
        let trailers = body.trailers().await?;
        self.arrival.complete(trailers);
        Ok(())
    }

    async fn act(&self, mut respond: SendResponse<Bytes>) -> Step {
        match &self.reply.what {
            What::Answer(answer) => self.answer(answer, respond).await,
            What::Stall => Err(given_up(&mut respond).await),
            What::Reset => self.end(Order::Reset).await,
            What::HalfHead => {
                // `:status: 200`, and no END_HEADERS: a CONTINUATION would have to follow.
                self.send(frame::encode(frame::HEADERS, self.id, &[0x88])).await;
                self.end(Order::Close).await
            }
            What::ResetStream(reason) => {
                respond.send_reset(reason.code().into());
                Ok(())
            }
            // The last two were turned down when the server was made.
            What::Close | What::NotConnected | What::Error(_) => self.end(Order::Close).await,
        }
    }

    async fn answer(&self, answer: &Answer, mut respond: SendResponse<Bytes>) -> Step {
        let mut response = Response::new(());
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers.clone();
        for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE] {
            response.headers_mut().remove(name);
        }
        if let Framing::Length(length) = Framing::of(answer) {
            response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        }
        if self.head.method == Method::HEAD || bodiless(answer.status) {
            respond.send_response(response, true)?;
            return Ok(());
        }
        let mut stream = respond.send_response(response, false)?;
        for part in &answer.parts {
            match part {
                Part::Data(data) => send_data(&mut stream, data.clone()).await?,
                Part::Pause(time) => wait(*time, &mut stream).await?,
                Part::Stall => return Err(given_up(&mut stream).await),
                Part::Close => return self.end(Order::Close).await,
                Part::Reset => return self.end(Order::Reset).await,
                Part::ResetStream(reason) => {
                    // A reset overtakes what is still to be written: this waits until it is.
                    self.send(Vec::new()).await;
                    stream.send_reset(reason.code().into());
                    return Ok(());
                }
                Part::Broken => {
                    // DATA belongs to no connection.
                    self.send(frame::encode(frame::DATA, 0, b"x")).await;
                    return self.end(Order::Close).await;
                }
            }
        }
        if answer.trailers.is_empty() {
            stream.send_data(Bytes::new(), true)
        } else {
            stream.send_trailers(answer.trailers.clone())
        }
    }

    async fn send(&self, frame: Vec<u8>) {
        let (done, sent) = oneshot::channel();
        let _ = self.orders.send(Order::Send(frame, done));
        let _ = sent.await;
    }

    /// The connection ends, and this with it.
    async fn end(&self, order: Order) -> Step {
        let _ = self.orders.send(order);
        future::pending().await
    }
}

/// The half of a stream that hears when the client gives it up.
trait Hears {
    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Result<h2::Reason, h2::Error>>;
}

impl Hears for SendResponse<Bytes> {
    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Result<h2::Reason, h2::Error>> {
        SendResponse::poll_reset(self, cx)
    }
}

impl Hears for SendStream<Bytes> {
    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Result<h2::Reason, h2::Error>> {
        SendStream::poll_reset(self, cx)
    }
}

/// As much at a time as the client lets through, so that what follows it comes after it.
async fn send_data(stream: &mut SendStream<Bytes>, mut data: Bytes) -> Step {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let Some(room) = future::poll_fn(|cx| stream.poll_capacity(cx)).await else {
            return Err(given_up(stream).await);
        };
        let room = room?.min(data.len());
        stream.send_data(data.split_to(room), false)?;
    }
    Ok(())
}

async fn given_up(stream: &mut impl Hears) -> h2::Error {
    match future::poll_fn(|cx| stream.poll_reset(cx)).await {
        Ok(reason) => reason.into(),
        Err(error) => error,
    }
}

async fn wait(time: Duration, stream: &mut impl Hears) -> Step {
    if time.is_zero() {
        return Ok(());
    }
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        error = given_up(stream) => Err(error),
    }
}
