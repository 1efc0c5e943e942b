//! One call's spans, as an OpenTelemetry exporter prints them: one for the call, and beneath it one for each attempt,
//! each with its own `traceparent` at the server.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use opentelemetry::{
    propagation::{Injector, TextMapPropagator},
    trace::TracerProvider,
};
use opentelemetry_sdk::{propagation::TraceContextPropagator, trace::SdkTracerProvider};
use redial::{
    AttemptBody, Backoff, RetryLayer, StandardPolicy, Timeouts, Transient,
    layers::AttemptSpanLayer,
    testing::{Reply, Server},
};
use tower::{ServiceBuilder, ServiceExt};
use tracing::Instrument;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt};

struct Headers<'a>(&'a mut http::HeaderMap);

impl Injector for Headers<'_> {
    fn set(&mut self, name: &str, value: String) {
        if let (Ok(name), Ok(value)) = (name.parse::<http::HeaderName>(), value.parse()) {
            self.0.insert(name, value);
        }
    }
}

/// Writes the attempt's span into the request: it stands below the span's layer.
fn propagate(mut request: Request<AttemptBody<Full<Bytes>>>) -> Request<AttemptBody<Full<Bytes>>> {
    let context = tracing::Span::current().context();
    TraceContextPropagator::new().inject_context(&context, &mut Headers(request.headers_mut()));
    request
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let provider =
        SdkTracerProvider::builder().with_simple_exporter(opentelemetry_stdout::SpanExporter::default()).build();
    let spans = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("shop"))
        // What is printed here is long as it is: without its places in the code and its threads.
        .with_location(false)
        .with_threads(false)
        .with_filter(
            Targets::new().with_targets([("redial", tracing::Level::DEBUG), ("attempt_spans", tracing::Level::INFO)]),
        );
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(spans))?;

    let server = Server::http1([Reply::status(503), Reply::reset(), Reply::ok("shipped")]);
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let policy = StandardPolicy::builder("shop", timeouts, Transient::usual())
        .backoff(Backoff::exponential(Duration::from_millis(100)).max(Duration::from_secs(1)))
        .build()?;
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy))
        .layer(AttemptSpanLayer::new())
        .map_request(propagate)
        .service(Client::builder(TokioExecutor::new()).build_http());

    let request = Request::get(server.url("/orders")).body(Full::default())?;
    // The call's own span: any that you open, or that of a trace layer above the retry layer.
    let response = client.oneshot(request).instrument(tracing::info_span!("order")).await?;
    provider.shutdown()?;

    println!("{}", response.status());
    for seen in &server.seen().requests {
        let parent = seen.headers.get("traceparent").and_then(|value| value.to_str().ok()).unwrap_or("none");
        println!("the server saw {parent}");
    }
    Ok(())
}
