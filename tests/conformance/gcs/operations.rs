//! The operations of Cloud Storage's JSON API: their requests, and what makes a repeat of each safe.
//!
//! Methods and paths: <https://cloud.google.com/storage/docs/json_api/v1>. Which operations may be repeated, and on what
//! condition: <https://cloud.google.com/storage/docs/retry-strategy>.

use http::Method;
use redial::{Routes, StandardPolicy, policy::StandardPolicyBuilder};

/// What makes a repeat safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The method, as RFC 9110 has it.
    Method,
    /// A reason that somebody wrote down.
    Stated(&'static str),
    /// This parameter of the query. Not the method: without the parameter, a repeat may undo what another client did in
    /// between.
    Query(&'static str),
    /// The etag within the request's body. A policy does not see bodies, so whoever put it there says so.
    Body,
    /// Nothing.
    Never,
}

/// One operation: its name, its method and path as a route, the query that it always has.
pub struct Operation {
    pub name: &'static str,
    pub route: &'static str,
    pub query: &'static str,
    pub repeat: Repeat,
}

const fn op(name: &'static str, route: &'static str, query: &'static str, repeat: Repeat) -> Operation {
    Operation { name, route, query, repeat }
}

use Repeat::{Body, Method as ByMethod, Never, Query, Stated};

const GENERATION: Repeat = Query("ifGenerationMatch");
const METAGENERATION: Repeat = Query("ifMetagenerationMatch");
const UNIQUE: Repeat = Stated("names of buckets are unique: a repeat makes no second one");

#[rustfmt::skip]
pub const OPERATIONS: &[Operation] = &[
    op("storage.bucket_acl.delete", "DELETE /storage/v1/b/{bucket}/acl/{entity}", "", Never),
    op("storage.bucket_acl.get", "GET /storage/v1/b/{bucket}/acl/{entity}", "", ByMethod),
    op("storage.bucket_acl.insert", "POST /storage/v1/b/{bucket}/acl", "", Never),
    op("storage.bucket_acl.list", "GET /storage/v1/b/{bucket}/acl", "", ByMethod),
    op("storage.bucket_acl.patch", "PATCH /storage/v1/b/{bucket}/acl/{entity}", "", Never),
    op("storage.bucket_acl.update", "PUT /storage/v1/b/{bucket}/acl/{entity}", "", Never),
    op("storage.buckets.delete", "DELETE /storage/v1/b/{bucket}", "", ByMethod),
    op("storage.buckets.get", "GET /storage/v1/b/{bucket}", "", ByMethod),
    op("storage.buckets.getIamPolicy", "GET /storage/v1/b/{bucket}/iam", "", ByMethod),
    op("storage.buckets.insert", "POST /storage/v1/b", "project=shop", UNIQUE),
    op("storage.buckets.list", "GET /storage/v1/b", "project=shop", ByMethod),
    // The parameter is required here: there is no such request without it.
    op("storage.buckets.lockRetentionPolicy", "POST /storage/v1/b/{bucket}/lockRetentionPolicy", "ifMetagenerationMatch=1", METAGENERATION),
    op("storage.buckets.patch", "PATCH /storage/v1/b/{bucket}", "", METAGENERATION),
    op("storage.buckets.setIamPolicy", "PUT /storage/v1/b/{bucket}/iam", "", Body),
    op("storage.buckets.testIamPermissions", "GET /storage/v1/b/{bucket}/iam/testPermissions", "permissions=storage.buckets.get", ByMethod),
    op("storage.buckets.update", "PUT /storage/v1/b/{bucket}", "", METAGENERATION),
    op("storage.default_object_acl.delete", "DELETE /storage/v1/b/{bucket}/defaultObjectAcl/{entity}", "", Never),
    op("storage.default_object_acl.get", "GET /storage/v1/b/{bucket}/defaultObjectAcl/{entity}", "", ByMethod),
    op("storage.default_object_acl.insert", "POST /storage/v1/b/{bucket}/defaultObjectAcl", "", Never),
    op("storage.default_object_acl.list", "GET /storage/v1/b/{bucket}/defaultObjectAcl", "", ByMethod),
    op("storage.default_object_acl.patch", "PATCH /storage/v1/b/{bucket}/defaultObjectAcl/{entity}", "", Never),
    op("storage.default_object_acl.update", "PUT /storage/v1/b/{bucket}/defaultObjectAcl/{entity}", "", Never),
    op("storage.hmacKey.create", "POST /storage/v1/projects/{project}/hmacKeys", "serviceAccountEmail=orders%40shop.example", Never),
    op("storage.hmacKey.delete", "DELETE /storage/v1/projects/{project}/hmacKeys/{id}", "", ByMethod),
    op("storage.hmacKey.get", "GET /storage/v1/projects/{project}/hmacKeys/{id}", "", ByMethod),
    op("storage.hmacKey.list", "GET /storage/v1/projects/{project}/hmacKeys", "", ByMethod),
    op("storage.hmacKey.update", "PUT /storage/v1/projects/{project}/hmacKeys/{id}", "", Body),
    op("storage.notifications.delete", "DELETE /storage/v1/b/{bucket}/notificationConfigs/{id}", "", ByMethod),
    op("storage.notifications.get", "GET /storage/v1/b/{bucket}/notificationConfigs/{id}", "", ByMethod),
    op("storage.notifications.insert", "POST /storage/v1/b/{bucket}/notificationConfigs", "", Never),
    op("storage.notifications.list", "GET /storage/v1/b/{bucket}/notificationConfigs", "", ByMethod),
    op("storage.object_acl.delete", "DELETE /storage/v1/b/{bucket}/o/{object}/acl/{entity}", "", Never),
    op("storage.object_acl.get", "GET /storage/v1/b/{bucket}/o/{object}/acl/{entity}", "", ByMethod),
    op("storage.object_acl.insert", "POST /storage/v1/b/{bucket}/o/{object}/acl", "", Never),
    op("storage.object_acl.list", "GET /storage/v1/b/{bucket}/o/{object}/acl", "", ByMethod),
    op("storage.object_acl.patch", "PATCH /storage/v1/b/{bucket}/o/{object}/acl/{entity}", "", Never),
    op("storage.object_acl.update", "PUT /storage/v1/b/{bucket}/o/{object}/acl/{entity}", "", Never),
    op("storage.objects.compose", "POST /storage/v1/b/{bucket}/o/{object}/compose", "", GENERATION),
    op("storage.objects.copy", "POST /storage/v1/b/{bucket}/o/{object}/copyTo/b/{bucket2}/o/{object2}", "", GENERATION),
    op("storage.objects.delete", "DELETE /storage/v1/b/{bucket}/o/{object}", "", GENERATION),
    op("storage.objects.get", "GET /storage/v1/b/{bucket}/o/{object}", "", ByMethod),
    op("storage.objects.insert", "POST /upload/storage/v1/b/{bucket}/o", "uploadType=media&name=2026%2Freport", GENERATION),
    op("storage.objects.list", "GET /storage/v1/b/{bucket}/o", "prefix=2026%2F", ByMethod),
    op("storage.objects.patch", "PATCH /storage/v1/b/{bucket}/o/{object}", "", METAGENERATION),
    op("storage.objects.rewrite", "POST /storage/v1/b/{bucket}/o/{object}/rewriteTo/b/{bucket2}/o/{object2}", "", GENERATION),
    op("storage.objects.update", "PUT /storage/v1/b/{bucket}/o/{object}", "", METAGENERATION),
    op("storage.serviceaccount.get", "GET /storage/v1/projects/{project}/serviceAccount", "", ByMethod),
];

/// The requests of a resumable upload within its session: each names the bytes that it is about, so that a repeat
/// writes nothing twice (<https://cloud.google.com/storage/docs/resumable-uploads>).
pub const SESSION: Operation = op("storage.resumable.upload", "PUT /upload/storage/v1/b/{bucket}/o", "", ByMethod);

pub fn find(name: &str) -> &'static Operation {
    OPERATIONS.iter().find(|operation| operation.name == name).unwrap_or_else(|| panic!("an operation of {name}"))
}

impl Operation {
    pub fn method(&self) -> Method {
        self.route.split_once(' ').and_then(|(method, _)| method.parse().ok()).expect("METHOD /path")
    }

    /// Path and query of a request, with the precondition that this operation has.
    pub fn target(&self, precondition: bool) -> String {
        let (_, path) = self.route.split_once(' ').expect("METHOD /path");
        let names = [
            ("{bucket}", "reports"),
            ("{bucket2}", "archive"),
            // A slash within an object's name is no slash of the path.
            ("{object}", "2026%2Freport"),
            ("{object2}", "2026%2Fcopy"),
            ("{entity}", "user-orders@shop.example"),
            ("{project}", "shop"),
            ("{id}", "17"),
        ];
        let path = names.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value));
        let condition = match self.repeat {
            Query(name) if precondition && !self.query.contains(name) => format!("{name}=1"),
            _ => String::new(),
        };
        let query: Vec<_> = [self.query, &condition].into_iter().filter(|part| !part.is_empty()).collect();
        if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
    }

    fn policy(&self, builder: StandardPolicyBuilder) -> StandardPolicy {
        let builder = builder.operation(self.name);
        let not_by_method = |builder: StandardPolicyBuilder| builder.not_idempotent(self.method());
        let builder = match self.repeat {
            Repeat::Method => builder,
            Stated(reason) => not_by_method(builder).idempotent(reason),
            Query(name) => not_by_method(builder).precondition_query(name),
            Body | Never => not_by_method(builder),
        };
        builder.build().expect("a policy")
    }
}

/// A policy for each operation. What none of them names is sent once.
pub fn routes(builder: impl Fn() -> StandardPolicyBuilder, unnamed: StandardPolicy) -> Routes {
    let add = |routes: redial::policy::RoutesBuilder, operation: &Operation| {
        routes.route(operation.route, operation.policy(builder()))
    };
    OPERATIONS.iter().chain([&SESSION]).fold(Routes::builder(unnamed), add).build().expect("routes")
}
