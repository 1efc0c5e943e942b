//! What an OpenAPI document lists: versions 2 (Swagger) and 3.

use std::collections::HashMap;

use http::{Method, Uri};

use super::node::{Node, Tree};

/// An operation of the document.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) method: Method,
    /// As the document writes it, without what its server says.
    pub(super) path: String,
    pub(super) id: Option<String>,
    /// Where it is served.
    pub(super) servers: Vec<Server>,
}

/// Where operations are served: an authority, where the document says one, and what stands before each path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) authority: Option<String>,
    pub(super) base: String,
}

/// The most segments of a path: a longer one is nobody's.
const LONGEST: usize = 200;

/// The keys of a path that are methods.
const METHODS: [(&str, Method); 8] = [
    ("get", Method::GET),
    ("put", Method::PUT),
    ("post", Method::POST),
    ("delete", Method::DELETE),
    ("options", Method::OPTIONS),
    ("head", Method::HEAD),
    ("patch", Method::PATCH),
    ("trace", Method::TRACE),
];

pub(super) fn operations(text: &str) -> Result<Vec<Listed>, String> {
    let tree = Tree::read(text)?;
    let root = tree.root();
    let (swagger, openapi) = (tree.text(root, "swagger"), tree.text(root, "openapi"));
    if swagger.is_none() && openapi.is_none() {
        return Err("it is no OpenAPI document: it has neither `openapi` nor `swagger`".to_owned());
    }
    let servers = if swagger.is_some() { vec![swagger_server(&tree)] } else { servers(&tree, root)? };
    let servers = if servers.is_empty() { vec![Server::default()] } else { servers };
    let mut listed = Vec::new();
    for (path, item) in tree.get(root, "paths").into_iter().flat_map(|paths| tree.entries(paths)) {
        // `x-…` is an extension.
        if !path.starts_with('/') {
            continue;
        }
        let item = referred(&tree, path, item)?;
        let of_item = servers_or(&tree, item, &servers)?;
        for (name, method) in &METHODS {
            let Some(operation) = tree.get(item, name) else { continue };
            let servers = servers_or(&tree, operation, &of_item)?;
            let id = tree.text(operation, "operationId").map(str::to_owned);
            listed.push(Listed { method: method.clone(), path: path.to_owned(), id, servers });
        }
    }
    Ok(listed)
}

/// A path may stand elsewhere in the document.
fn referred<'a>(tree: &'a Tree, path: &str, item: &'a Node) -> Result<&'a Node, String> {
    let Some(reference) = tree.text(item, "$ref") else { return Ok(item) };
    tree.at(reference).ok_or_else(|| {
        format!("`{path}` refers to `{reference}`, which is not in this document: bundle it into one first")
    })
}

fn servers_or(tree: &Tree, node: &Node, above: &[Server]) -> Result<Vec<Server>, String> {
    let own = servers(tree, node)?;
    Ok(if own.is_empty() { above.to_vec() } else { own })
}

fn servers(tree: &Tree, node: &Node) -> Result<Vec<Server>, String> {
    let listed = tree.list(node, "servers").filter_map(|server| {
        let url = tree.text(server, "url")?;
        let variables = tree.get(server, "variables");
        let variables = variables.into_iter().flat_map(|variables| tree.entries(variables));
        let url = variables.fold(url.to_owned(), |url, (name, variable)| {
            let default = tree.text(variable, "default").unwrap_or_default();
            url.replace(&format!("{{{name}}}"), default)
        });
        Some(server_of(&url))
    });
    listed.collect()
}

fn server_of(url: &str) -> Result<Server, String> {
    let unreadable = || format!("the server `{}` is no URL", crate::redact::Redacted(url));
    let base = |path: &str| path.trim_end_matches('/').to_owned();
    if url.is_empty() {
        return Ok(Server::default());
    }
    let uri: Uri = url.parse().map_err(|_| unreadable())?;
    // `example.com/v1` is a path without its slash, and means nothing to a client.
    if uri.host().is_none() && !url.starts_with('/') {
        return Err(unreadable());
    }
    let authority = uri.authority().map(|authority| match authority.as_str().rsplit_once('@') {
        Some((_, host)) => host.to_owned(),
        None => authority.as_str().to_owned(),
    });
    Ok(Server { authority, base: base(uri.path()) })
}

fn swagger_server(tree: &Tree) -> Server {
    let authority = tree.text(tree.root(), "host").map(str::to_owned);
    let base = tree.text(tree.root(), "basePath").unwrap_or_default().trim_end_matches('/').to_owned();
    Server { authority, base }
}

/// A path of the document with something in place of its parameters.
pub(super) fn filled(path: &str, with: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((_, after)) = after.split_once('}') else { break };
        out.extend([before, with]);
        rest = after;
    }
    out + rest
}

/// The paths of a document, to be asked whether one of them is for a path: each parameter stands for one or more
/// characters of a segment.
#[derive(Default)]
pub(super) struct Paths {
    literals: HashMap<String, Paths>,
    templates: HashMap<String, Paths>,
    /// Of the operations whose path ends here.
    methods: Vec<Method>,
}

impl Paths {
    pub(super) fn insert(&mut self, method: &Method, path: &str) {
        if path.matches('/').count() > LONGEST {
            return;
        }
        let mut step = self;
        for segment in path.split('/') {
            let steps = if segment.contains('{') { &mut step.templates } else { &mut step.literals };
            step = steps.entry(segment.to_owned()).or_default();
        }
        step.methods.push(method.clone());
    }

    /// Whether there is one for this path, with this method or with any.
    pub(super) fn has(&self, method: Option<&Method>, path: &str) -> bool {
        let segments: Vec<&str> = path.split('/').collect();
        // Where it is worth looking on, and how many segments lie behind.
        let mut open = vec![(self, 0)];
        while let Some((step, behind)) = open.pop() {
            let Some(segment) = segments.get(behind) else {
                if step.methods.iter().any(|found| method.is_none_or(|method| method == found)) {
                    return true;
                }
                continue;
            };
            open.extend(step.literals.get(*segment).map(|next| (next, behind + 1)));
            let templates = step.templates.iter().filter(|(template, _)| segment_matches(template, segment));
            open.extend(templates.map(|(_, next)| (next, behind + 1)));
        }
        false
    }
}

fn segment_matches(template: &str, segment: &str) -> bool {
    // The literal parts, in their order, with at least one character between two.
    let literals: Vec<String> = filled(template, "\0").split('\0').map(str::to_owned).collect();
    let [first, middle @ .., last] = literals.as_slice() else { return template == segment };
    let Some(mut rest) = segment.strip_prefix(first.as_str()) else { return false };
    for literal in middle {
        let Some(found) =
            rest.char_indices().nth(1).and_then(|(one, _)| rest[one..].find(literal.as_str()).map(|at| one + at))
        else {
            return false;
        };
        rest = &rest[found + literal.len()..];
    }
    rest.strip_suffix(last.as_str()).is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use http::Method;
    use proptest::prelude::*;

    use super::{Paths, filled, operations, server_of};

    proptest! {
        /// Whatever a document is made of, it is read or refused.
        #[test]
        fn any_text_is_read_or_refused(words in prop::collection::vec(prop::sample::select(WORDS), 0..40), any in any::<String>()) {
            let _ = operations(&words.concat());
            let _ = operations(&any);
            let _ = operations(&format!("openapi: 3.1.0\npaths:\n  /a: {any}\n"));
            let mut paths = Paths::default();
            paths.insert(&Method::GET, &any);
            let _ = paths.has(None, &filled(&any, "x"));
        }
    }

    const WORDS: &[&str] = &[
        "openapi: 3.1.0\n",
        "paths:",
        "servers:",
        "url: ",
        "/v1",
        "https://{x}/",
        "  ",
        "\n",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ",",
        ": ",
        "/a/{b}",
        "get: ",
        "$ref: ",
        "'#/paths/~1a'",
        "&a ",
        "*a",
        "\"",
        "'",
        "|\n",
        "? ",
        "---\n",
        "...\n",
        "!t ",
        "#",
        "\t",
        "ä",
        "\u{0}",
    ];

    #[test]
    fn paths() {
        assert_eq!(filled("/a/{b}/{c}.{d}", "x"), "/a/x/x.x");
        assert_eq!(filled("/a/{b", "x"), "/a/{b");
        for (template, path, is) in [
            ("/a/{b}", "/a/1", true),
            ("/a/{b}", "/a/", false),
            ("/a/{b}", "/a/1/2", false),
            ("/a/{b}:go", "/a/1:go", true),
            ("/a/{b}:go", "/a/:go", false),
            ("/{a}.{b}", "/1.2", true),
            ("/{a}.{b}", "/1", false),
            ("/{a}.{b}", "/.2", false),
            ("/a", "/a", true),
            ("/ä{b}", "/äö", true),
        ] {
            let mut paths = Paths::default();
            paths.insert(&Method::GET, template);
            assert_eq!(paths.has(None, path), is, "{template} {path}");
            assert!(!paths.has(Some(&Method::PUT), path), "{template} {path}");
        }
        let mut paths = Paths::default();
        paths.insert(&Method::GET, &"/a".repeat(100_000));
        assert!(!paths.has(None, &"/a".repeat(100_000)));
    }

    #[test]
    fn servers() {
        let server = |url| server_of(url).map(|server| (server.authority, server.base));
        assert_eq!(
            server("https://u:p@api.example:8443/v1/"),
            Ok((Some("api.example:8443".to_owned()), "/v1".to_owned()))
        );
        assert_eq!(server("/v1"), Ok((None, "/v1".to_owned())));
        assert_eq!(server("/"), Ok((None, String::new())));
        assert!(server("example.com/v1").is_err() && server("https://{x}/").is_err());
    }
}
