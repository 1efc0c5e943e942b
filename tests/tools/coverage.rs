//! `redial coverage`

use crate::command::{Ended, Folder, SHOP};

const YAML: &str = "openapi: 3.1.0
info: { title: Shop, version: '1' }
servers:
  - url: https://api.shop.example/
x-common: &read
  get: { operationId: readOrder, responses: {} }
paths:
  /orders:
    post: { operationId: createOrder, responses: {} }
    get:
      operationId: listOrders
      responses: {}
  /orders/{id}: *read
  /health:
    $ref: '#/components/pathItems/health'
components:
  pathItems:
    health:
      get: { responses: {} }
";

fn coverage(contract: &str, name: &str, spec: &str, more: &[&str]) -> Ended {
    let folder = Folder::with(&[("shop.toml", contract), (name, spec)]);
    folder.run(&[&["coverage", "shop.toml", "--openapi", name], more].concat())
}

#[test]
fn what_either_side_lacks() {
    let ended = coverage(SHOP, "openapi.yaml", YAML, &[]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    insta::assert_snapshot!(ended.out);
    // The provider's own settings may be enough; the contract's own surplus is none the less one.
    let ended = coverage(SHOP, "openapi.yaml", YAML, &["--allow-rest"]);
    assert!(ended.code == 1 && !ended.out.contains("operations without"), "{}", ended.out);
    let fewer = SHOP.split("[[provider.shop.operation]]\nname  = \"orders.cancel\"").next().unwrap();
    assert_eq!(coverage(fewer, "openapi.yaml", YAML, &["--allow-rest"]).code, 0);
    // Without them, what no operation matches is sent once.
    let once = SHOP.replace("elsewhere = []", "elsewhere = []\nothers = \"once\"");
    let ended = coverage(&once, "openapi.yaml", YAML, &["--allow-rest"]);
    assert!(ended.out.contains("  GET /health: sent once\n"), "{}", ended.out);
}

#[test]
fn all_that_is_listed_has_a_contract() {
    let all = SHOP.split("[[provider.shop.operation]]").next().unwrap().to_owned()
        + "[[provider.shop.operation]]\nname = \"orders\"\nmatch = [\"/orders\", \"GET /orders/{*rest}\"]\n\
           [[provider.shop.operation]]\nname = \"health\"\nmatch = \"GET /health\"\n\
           [[provider.shop.operation]]\nname = \"newest\"\nmatch = \"GET /orders/newest\"\n";
    let ended = coverage(&all, "openapi.yaml", YAML, &[]);
    // `/orders/newest` is one of `/orders/{id}`.
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "4 of 4 operations have a contract; 0 contracts without an operation\n")
    );
}

/// The document's base path belongs to each of its paths.
#[test]
fn servers_and_versions() {
    let contract = SHOP
        .replace("\"POST /orders\"", "\"POST /v1/orders\"")
        .replace("/orders/{id}/cancel", "/v1/orders/{id}/cancel");
    let paths = r#""paths": {"/orders": {"post": {}}, "/orders/{number}/cancel": {"post": {}}}"#;
    for head in [
        r#""openapi": "3.0.3", "servers": [{"url": "https://api.shop.example/v1"}]"#,
        r#""openapi": "3.0.3", "servers": [{"url": "/v1/"}]"#,
        r#""openapi": "3.0.3", "servers": [{"url": "https://staging.example/v1"}]"#,
        r#""openapi": "3.0.3", "servers": [{"url": "https://{where}.shop.example/{version}", "variables": {"where": {"default": "api"}, "version": {"default": "v1"}}}]"#,
        r#""swagger": "2.0", "host": "api.shop.example", "basePath": "/v1""#,
    ] {
        let ended = coverage(&contract, "openapi.json", &format!("{{{head}, {paths}}}"), &[]);
        assert_eq!(ended.code, 0, "{head} {} {}", ended.out, ended.err);
    }
    let ended = coverage(&contract, "openapi.json", &format!("{{\"openapi\": \"3.0.3\", {paths}}}"), &[]);
    assert_eq!(ended.code, 1, "without the base path they are others: {}", ended.out);
}

#[test]
fn whose_document_it_is() {
    let two = SHOP.to_owned() + &SHOP.replace("format = 1", "").replace("shop", "mail");
    let ended = coverage(&two, "openapi.yaml", YAML, &[]);
    assert!(!ended.out.contains("mail"), "by its servers: {}", ended.out);
    let elsewhere = YAML.replace("api.shop.example", "api.example");
    let ended = coverage(&two, "openapi.yaml", &elsewhere, &[]);
    assert!(ended.code == 2 && ended.err.contains("with --provider: shop, mail"), "{}", ended.err);
    let ended = coverage(&two, "openapi.yaml", &elsewhere, &["--provider", "mail"]);
    assert!(ended.out.contains("  mail orders.cancel: POST /orders/{id}/cancel (shop.toml:"), "{}", ended.out);
    assert_eq!(coverage(&two, "openapi.yaml", YAML, &["--provider", "post"]).code, 2);
}

#[test]
fn for_machines() {
    let ended = coverage(SHOP, "openapi.yaml", YAML, &["--format", "json"]);
    assert_eq!(ended.code, 1);
    let value: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let operations = value["operations"].as_array().unwrap();
    let created = operations.iter().find(|operation| operation["id"] == "createOrder").unwrap();
    assert_eq!((&created["provider"], &created["operation"]), (&"shop".into(), &"orders.create".into()));
    let health = operations.iter().find(|operation| operation["path"] == "/health").unwrap();
    assert_eq!((&health["provider"], &health["operation"]), (&"shop".into(), &serde_json::Value::Null));
    assert_eq!(value["without_an_operation"][0]["operation"], "orders.cancel");
}

#[test]
fn what_cannot_be_read() {
    let far = "openapi: 3.1.0\npaths: { /a: { $ref: './a.yaml' } }\n";
    let deep = "openapi: 3.1.0\npaths:\n".to_owned()
        + &(1..300).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect::<String>();
    let large = "#".repeat(17 << 20);
    for (spec, words) in [
        ("", "it is empty"),
        ("a: b\n", "neither `openapi` nor `swagger`"),
        ("openapi: 3.1.0\n", "it lists no operation"),
        ("openapi: [3\n", "it is no YAML"),
        ("{\"openapi\": ", "it is no JSON"),
        (far, "`/a` refers to `./a.yaml`, which is not in this document"),
        (&deep, "more than 100 deep"),
        (&large, "too large"),
        (
            "openapi: 3.1.0\nservers: [{ url: 'not a url' }]\npaths: { /a: { get: {} } }\n",
            "the server `not a url` is no URL",
        ),
    ] {
        let ended = coverage(SHOP, "spec", spec, &[]);
        let words_found = ended.code == 2 && ended.err.contains(words) && ended.out.is_empty();
        assert!(words_found, "{words}: {} {} {}", ended.code, ended.out, ended.err);
    }
    let bomb = (1..40).fold("openapi: 3.1.0\na0: &a0 [x]\n".to_owned(), |text, level| {
        let below = format!("*a{}", level - 1);
        text + &format!("a{level}: &a{level} [{}]\n", [below.as_str(); 20].join(","))
    }) + "paths: { /a: { get: { x: *a39 } } }\n";
    assert_eq!(coverage(SHOP, "bomb.yaml", &bomb, &[]).code, 1);
}

/// As many operations as a contract may have, in under ten seconds also where nothing is optimized.
#[test]
fn a_large_document() {
    let paths: String =
        (0..10_000).map(|number| format!("  /a{number}/{{id}}:\n    get: {{ operationId: a{number} }}\n")).collect();
    let began = std::time::Instant::now();
    let ended = coverage(SHOP, "large.yaml", &format!("openapi: 3.1.0\npaths:\n{paths}"), &[]);
    assert!(ended.out.ends_with("0 of 10000 operations have a contract; 2 contracts without an operation\n"));
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
}
