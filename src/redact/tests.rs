use super::*;

fn shown(text: &str) -> String {
    Redacted(text).to_string()
}

#[test]
fn urls_lose_their_secrets_wherever_they_stand() {
    let text = "error for url (https://user:s3cret@api.example:8443/p?api_key=K123&x=1#frag): \"http://a@b/?t=1\"";
    let shown = shown(text);
    for secret in ["s3cret", "user", "K123", "frag", "a@b", "t=1"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    assert!(shown.contains("https://api.example:8443/p"), "{shown}");
}

#[test]
fn a_path_with_a_query_alone_loses_it() {
    assert_eq!(shown("GET /v1/things?token=K123 failed"), "GET /v1/things?… failed");
}

#[test]
fn plain_text_is_left_as_it_is() {
    assert_eq!(shown("Connection refused (os error 111)"), "Connection refused (os error 111)");
    assert_eq!(shown("what now?"), "what now?");
    assert_eq!(shown("mail to a@b.example"), "mail to a@b.example");
}

#[test]
fn what_only_looks_like_the_end_of_a_url_is_part_of_it() {
    for text in [
        "https://user:it's3cret@host/",
        "https://host/?sig=abc's3cret",
        "(https://a.example/,https://user:s3cret@host/)",
        "user:s3cret@host:443",
        "//user:s3cret@host/",
        "https:\\/\\/user:s3cret@host",
        "https://user@s3cret@host/#s3cret",
    ] {
        let shown = shown(text);
        assert!(!shown.contains("s3cret") && !shown.contains("user"), "{text}: {shown}");
    }
}

#[test]
fn it_is_one_short_line() {
    let long = shown(&format!("first\nsecond\r\n{}", "x".repeat(10_000)));
    assert!(long.starts_with("first second  x"), "{long}");
    assert!(long.chars().count() <= LONGEST + 1);
}

#[test]
fn a_target_has_no_userinfo_and_no_query() {
    let uri: Uri = "http://user:s3cret@127.0.0.1:8080/p?api_key=K123".parse().unwrap();
    assert_eq!(Target(&uri).to_string(), "http://127.0.0.1:8080/p");
    assert_eq!(Target(&"/only/path?x=1".parse().unwrap()).to_string(), "/only/path");
}
