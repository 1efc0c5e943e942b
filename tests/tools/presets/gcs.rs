//! Cloud Storage, row by row of the retry conformance table of Google's client libraries.

use serde_json::Value;

use super::{End, call, request, status};

const TABLE: &str = include_str!("../../conformance/gcs_retry_tests.json");

/// The requests of the table's methods: method, path, and the condition of a conditional one. `etag`: within the body, where
/// no policy sees it.
#[rustfmt::skip]
const REQUESTS: &[(&str, &str, &str)] = &[
    ("storage.bucket_acl.delete", "DELETE /storage/v1/b/reports/acl/user", ""),
    ("storage.bucket_acl.get", "GET /storage/v1/b/reports/acl/user", ""),
    ("storage.bucket_acl.insert", "POST /storage/v1/b/reports/acl", ""),
    ("storage.bucket_acl.list", "GET /storage/v1/b/reports/acl", ""),
    ("storage.bucket_acl.patch", "PATCH /storage/v1/b/reports/acl/user", ""),
    ("storage.bucket_acl.update", "PUT /storage/v1/b/reports/acl/user", ""),
    ("storage.buckets.delete", "DELETE /storage/v1/b/reports", ""),
    ("storage.buckets.get", "GET /storage/v1/b/reports", ""),
    ("storage.buckets.getIamPolicy", "GET /storage/v1/b/reports/iam", ""),
    ("storage.buckets.insert", "POST /storage/v1/b?project=shop", ""),
    ("storage.buckets.list", "GET /storage/v1/b?project=shop", ""),
    ("storage.buckets.lockRetentionPolicy", "POST /storage/v1/b/reports/lockRetentionPolicy?ifMetagenerationMatch=1", ""),
    ("storage.buckets.patch", "PATCH /storage/v1/b/reports", "ifMetagenerationMatch=1"),
    ("storage.buckets.setIamPolicy", "PUT /storage/v1/b/reports/iam", "etag"),
    ("storage.buckets.testIamPermissions", "GET /storage/v1/b/reports/iam/testPermissions", ""),
    ("storage.buckets.update", "PUT /storage/v1/b/reports", "ifMetagenerationMatch=1"),
    ("storage.default_object_acl.delete", "DELETE /storage/v1/b/reports/defaultObjectAcl/user", ""),
    ("storage.default_object_acl.get", "GET /storage/v1/b/reports/defaultObjectAcl/user", ""),
    ("storage.default_object_acl.insert", "POST /storage/v1/b/reports/defaultObjectAcl", ""),
    ("storage.default_object_acl.list", "GET /storage/v1/b/reports/defaultObjectAcl", ""),
    ("storage.default_object_acl.patch", "PATCH /storage/v1/b/reports/defaultObjectAcl/user", ""),
    ("storage.default_object_acl.update", "PUT /storage/v1/b/reports/defaultObjectAcl/user", ""),
    ("storage.hmacKey.create", "POST /storage/v1/projects/shop/hmacKeys", ""),
    ("storage.hmacKey.delete", "DELETE /storage/v1/projects/shop/hmacKeys/17", ""),
    ("storage.hmacKey.get", "GET /storage/v1/projects/shop/hmacKeys/17", ""),
    ("storage.hmacKey.list", "GET /storage/v1/projects/shop/hmacKeys", ""),
    ("storage.hmacKey.update", "PUT /storage/v1/projects/shop/hmacKeys/17", "etag"),
    ("storage.notifications.delete", "DELETE /storage/v1/b/reports/notificationConfigs/17", ""),
    ("storage.notifications.get", "GET /storage/v1/b/reports/notificationConfigs/17", ""),
    ("storage.notifications.insert", "POST /storage/v1/b/reports/notificationConfigs", ""),
    ("storage.notifications.list", "GET /storage/v1/b/reports/notificationConfigs", ""),
    ("storage.object_acl.delete", "DELETE /storage/v1/b/reports/o/2026%2F1/acl/user", ""),
    ("storage.object_acl.get", "GET /storage/v1/b/reports/o/2026%2F1/acl/user", ""),
    ("storage.object_acl.insert", "POST /storage/v1/b/reports/o/2026%2F1/acl", ""),
    ("storage.object_acl.list", "GET /storage/v1/b/reports/o/2026%2F1/acl", ""),
    ("storage.object_acl.patch", "PATCH /storage/v1/b/reports/o/2026%2F1/acl/user", ""),
    ("storage.object_acl.update", "PUT /storage/v1/b/reports/o/2026%2F1/acl/user", ""),
    ("storage.objects.compose", "POST /storage/v1/b/reports/o/2026%2F1/compose", "ifGenerationMatch=1"),
    ("storage.objects.copy", "POST /storage/v1/b/reports/o/2026%2F1/copyTo/b/archive/o/1", "ifGenerationMatch=1"),
    ("storage.objects.delete", "DELETE /storage/v1/b/reports/o/2026%2F1", "ifGenerationMatch=1"),
    ("storage.objects.get", "GET /storage/v1/b/reports/o/2026%2F1", ""),
    ("storage.objects.insert", "POST /upload/storage/v1/b/reports/o?uploadType=media&name=1", "ifGenerationMatch=1"),
    ("storage.objects.list", "GET /storage/v1/b/reports/o", ""),
    ("storage.objects.patch", "PATCH /storage/v1/b/reports/o/2026%2F1", "ifMetagenerationMatch=1"),
    ("storage.objects.rewrite", "POST /storage/v1/b/reports/o/2026%2F1/rewriteTo/b/archive/o/1", "ifGenerationMatch=1"),
    ("storage.objects.update", "PUT /storage/v1/b/reports/o/2026%2F1", "ifMetagenerationMatch=1"),
    ("storage.serviceaccount.get", "GET /storage/v1/projects/shop/serviceAccount", ""),
];

#[tokio::test(start_paused = true)]
async fn the_conformance_table() {
    let table: Value = serde_json::from_str(TABLE).unwrap();
    let mut rows = 0;
    for test in table["retryTests"].as_array().unwrap() {
        // Uploads and downloads resume where they broke off, which is no repeat: they have tests of their own.
        let id = test["id"].as_u64().unwrap();
        if id > 6 {
            continue;
        }
        let precondition = test["preconditionProvided"].as_bool().unwrap();
        for method in test["methods"].as_array().unwrap() {
            let name = method["name"].as_str().unwrap();
            for case in test["cases"].as_array().unwrap() {
                let ends: Vec<End> = case["instructions"].as_array().unwrap().iter().map(end).collect();
                row(id, name, precondition, &ends).await;
                rows += 1;
            }
        }
    }
    assert_eq!(rows, 309);
}

/// What the table says of its scenarios: what may be repeated succeeds once the instructions are used up, all else is sent
/// once, or until the first answer that does not pass.
async fn row(id: u64, name: &str, precondition: bool, ends: &[End]) {
    let (_, route, condition) = REQUESTS.iter().find(|(known, ..)| *known == name).unwrap_or_else(|| panic!("{name}"));
    let (method, path) = route.split_once(' ').unwrap();
    let in_body = *condition == "etag";
    let query = match (precondition && !in_body && !condition.is_empty(), path.contains('?')) {
        (true, true) => format!("&{condition}"),
        (true, false) => format!("?{condition}"),
        (false, _) => String::new(),
    };
    let mut request = request(method, &format!("https://storage.googleapis.com{path}{query}"));
    if precondition && in_body {
        // A policy does not see the etag in the body: whoever put it there says so.
        let options = redial::RequestOptions::new().idempotent("the etag is in the body");
        request.extensions_mut().insert(options);
    }
    let mut all = ends.to_vec();
    all.push(status(200));
    let seen = call("gcs", request, &all).await;
    let expected = match id {
        1 | 2 => all.len(),
        3..=5 => 1,
        _ => ends.len(),
    };
    assert_eq!(seen.attempts(), expected, "scenario {id}, {name}, {ends:?}");
    if matches!(id, 1 | 2) {
        assert_eq!(seen.status, Some(200), "scenario {id}, {name}, {ends:?}");
    }
}

fn end(instruction: &Value) -> End {
    match instruction.as_str().unwrap() {
        "return-reset-connection" => End::Lost,
        code => status(code.strip_prefix("return-").unwrap().parse().unwrap()),
    }
}

/// A condition that is missing makes a PUT or DELETE one that is not repeated, whatever RFC 9110 says of the method.
#[tokio::test(start_paused = true)]
async fn without_its_condition_an_idempotent_method_is_none() {
    let uri = "https://storage.googleapis.com/storage/v1/b/reports/o/1";
    assert_eq!(call("gcs", request("DELETE", uri), &[status(503)]).await.attempts(), 1);
    let conditional = format!("{uri}?ifGenerationMatch=7");
    assert_eq!(call("gcs", request("DELETE", &conditional), &[status(503)]).await.attempts(), 3);
}
