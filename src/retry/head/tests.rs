use http::{HeaderName, HeaderValue};
use proptest::{collection::vec, prelude::*};

use super::*;

fn keep(request: &Request<()>) -> Head {
    Head::keep(&request.clone().into_parts().0).0
}

fn line(request: &Request<()>) -> RequestLine {
    RequestLine { method: request.method().clone(), uri: request.uri().clone() }
}

fn name() -> impl Strategy<Value = HeaderName> {
    let known = prop::sample::select(vec!["accept", "authorization", "content-type", "cookie", "x-a", "x-b", "x-c"]);
    prop_oneof![known.prop_map(str::to_owned), "[a-z][a-z0-9_-]{0,70}"]
        .prop_map(|name| HeaderName::from_bytes(name.as_bytes()).unwrap())
}

fn value() -> impl Strategy<Value = HeaderValue> {
    let byte = prop_oneof![Just(b'\t'), 0x20..=0x7e_u8, 0x80..=0xff_u8];
    (vec(byte, 0..200), any::<bool>()).prop_map(|(bytes, sensitive)| {
        let mut value = HeaderValue::from_bytes(&bytes).unwrap();
        value.set_sensitive(sensitive);
        value
    })
}

fn method() -> impl Strategy<Value = Method> {
    prop_oneof![Just(Method::GET), Just(Method::POST), Just(Method::from_bytes(b"A-METHOD-OF-ONES-OWN").unwrap())]
}

fn version() -> impl Strategy<Value = Version> {
    prop::sample::select(vec![Version::HTTP_10, Version::HTTP_11, Version::HTTP_2])
}

#[derive(Clone, Debug, PartialEq)]
struct Callers(u32);

proptest! {
    #[test]
    fn every_attempt_has_the_same_head(
        headers in vec((name(), value()), 0..40),
        method in method(),
        version in version(),
        path in "/[a-z]{0,20}(\\?[a-z]=[a-z]{0,9})?",
        extension in any::<Option<u32>>(),
    ) {
        let mut request = Request::new(());
        for (name, value) in headers {
            request.headers_mut().append(name, value);
        }
        *request.method_mut() = method;
        *request.version_mut() = version;
        *request.uri_mut() = format!("https://user:word@host.example:8443{path}").parse().unwrap();
        if let Some(extension) = extension {
            request.extensions_mut().insert(Callers(extension));
        }

        let (head, line, names) = (keep(&request), line(&request), Names::default());
        let unpacked = head.unpack();
        for _ in 2..=4 {
            let again = head.rebuild(&unpacked, &line, &names, ());
            prop_assert_eq!(again.method(), request.method());
            prop_assert_eq!(again.uri(), request.uri());
            prop_assert_eq!(again.version(), request.version());
            let all = |request: &Request<()>| -> Vec<_> {
                let headers = request.headers().iter();
                headers.map(|(name, value)| (name.clone(), value.clone(), value.is_sensitive())).collect()
            };
            // Names, values, sensitivity, order and repeats.
            prop_assert_eq!(all(&again), all(&request));
            prop_assert_eq!(again.extensions().get::<Callers>(), request.extensions().get::<Callers>());
        }
    }
}

#[test]
fn it_is_one_allocation_of_the_exact_size() {
    let request = Request::get("/").header("x-some", "value").header(http::header::ACCEPT, "b").body(()).unwrap();
    let size = FLAGS + 2 * LENGTHS + "x-some".len() + "value".len() + "accept".len() + "b".len();
    assert_eq!(size_of_val(&*keep(&request).pack), size.next_multiple_of(8));
}

#[test]
fn many_values_of_one_name_come_back() {
    let mut request = Request::new(());
    for number in 0..40_000_u32 {
        request.headers_mut().append("x-many", number.into());
    }
    let head = keep(&request);
    let again = head.rebuild(&head.unpack(), &line(&request), &Names::default(), ());
    assert_eq!(again.headers(), request.headers());
}

#[test]
fn upgrades_are_noticed() {
    let plain = Request::get("/").body(()).unwrap();
    let upgrade = Request::get("/").header("upgrade", "websocket").body(()).unwrap();
    let connect = Request::connect("host:443").body(()).unwrap();
    assert!(!keep(&plain).upgrade);
    assert!(keep(&upgrade).upgrade);
    assert!(keep(&connect).upgrade);
}

#[test]
fn the_first_length_that_is_said_is_noticed_wherever_it_stands() {
    let length = |request: http::request::Builder| Head::keep(&request.body(()).unwrap().into_parts().0).1;
    let said = |large: usize| {
        let request = Request::get("/").header("x-large", "v".repeat(large)).header("content-length", " 12 ");
        length(request.header("content-length", "13"))
    };
    assert_eq!((said(1), said(size_of::<[Word; SMALL]>())), (Some(12), Some(12)));
    let unsaid = |value: &str| length(Request::get("/").header("content-length", value));
    assert_eq!((unsaid("twelve"), unsaid(""), length(Request::get("/"))), (None, None, None));
}
