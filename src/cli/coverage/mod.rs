//! `redial coverage`

mod node;
mod openapi;

use std::collections::HashSet;

use super::{
    End,
    arguments::{Coverage, Shape},
    check::counted,
    index::{Found, Index},
    input, sample,
    terminal::Terminal,
};
use crate::{
    contract::{
        Loaded,
        resolve::{Operation, Provider},
        routing::Matcher,
    },
    redact::Redacted,
};
use openapi::{Listed, Paths, Server};

/// The largest document.
const LARGEST: u64 = 16 * 1024 * 1024;

/// What an operation of the document has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Has {
    /// An operation of this provider.
    Operation(String, String),
    /// No more than this provider's own settings.
    Rest(String),
    Nothing,
}

struct Compared<'a> {
    listed: Vec<(Listed, Has)>,
    /// Operations of the contract that the document does not have.
    unused: Vec<(&'a Provider, &'a Operation)>,
}

impl Compared<'_> {
    fn lacks(&self, rest_is_enough: bool) -> impl Iterator<Item = &(Listed, Has)> {
        self.listed.iter().filter(move |(_, has)| match has {
            Has::Operation(..) => false,
            Has::Rest(_) => !rest_is_enough,
            Has::Nothing => true,
        })
    }
}

pub(super) fn run(command: &Coverage, terminal: &Terminal) -> End {
    let loaded = match input::loaded(&command.contract, terminal) {
        Ok(loaded) => loaded,
        Err(end) => return end,
    };
    let compared = match compared(command, &loaded) {
        Ok(compared) => compared,
        Err(message) => return input::unreadable(&message, terminal),
    };
    terminal.out(&match command.format {
        Shape::Human => human(&compared, command, &loaded, terminal),
        Shape::Json => json(&compared, &loaded),
    });
    let kept = compared.lacks(command.allow_rest).next().is_none() && compared.unused.is_empty();
    if kept { End::Kept } else { End::Broken }
}

fn compared<'a>(command: &Coverage, loaded: &'a Loaded) -> Result<Compared<'a>, String> {
    let of_file = |message: String| format!("`{}`: {message}", command.openapi.display());
    let text = input::text(&command.openapi, LARGEST)?;
    let listed = openapi::operations(&text).map_err(of_file)?;
    if listed.is_empty() {
        return Err(of_file("it lists no operation".to_owned()));
    }
    let index = Index::new(loaded);
    let providers = providers(command, loaded, &index, &listed)?;
    let mut used: HashSet<(String, String)> = HashSet::new();
    let mut paths = Paths::default();
    let listed: Vec<_> = listed
        .into_iter()
        .map(|listed| {
            listed
                .servers
                .iter()
                .for_each(|server| paths.insert(&listed.method, &format!("{}{}", server.base, listed.path)));
            let has = has(&listed, &index, &providers);
            if let Has::Operation(provider, operation) = &has {
                used.insert((provider.clone(), operation.clone()));
            }
            (listed, has)
        })
        .collect();
    let mut unused = Vec::new();
    for provider in providers {
        for operation in provider.operations.iter().filter(|operation| !operation.is_rest) {
            let key = (provider.name.value.clone(), operation.name.value.clone());
            if !used.contains(&key) && !is_listed(operation, &paths) {
                unused.push((provider, operation));
            }
        }
    }
    Ok(Compared { listed, unused })
}

/// Those that the document is of: as asked for, or by its servers, or the only one.
fn providers<'a>(
    command: &Coverage,
    loaded: &'a Loaded,
    index: &Index<'a>,
    listed: &[Listed],
) -> Result<Vec<&'a Provider>, String> {
    let all = &loaded.resolved.providers;
    let names = || all.iter().map(|provider| provider.name.value.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(name) = &command.provider {
        let found = all.iter().find(|provider| provider.name.value == *name);
        let found = found.ok_or_else(|| format!("there is no provider `{}`: there is {}", Redacted(name), names()))?;
        return Ok(vec![found]);
    }
    let mut served: Vec<&Server> = Vec::new();
    for server in listed.iter().flat_map(|listed| &listed.servers) {
        if !served.contains(&server) {
            served.push(server);
        }
    }
    let hosts: HashSet<String> = served
        .into_iter()
        .filter_map(|server| {
            let request = sample::request(server.authority.as_ref()?, &http::Method::GET, sample::REST)?;
            Some(index.of_host(&request)?.name.value.clone())
        })
        .collect();
    let by_host: Vec<_> = all.iter().filter(|provider| hosts.contains(&provider.name.value)).collect();
    match (by_host.is_empty(), all.as_slice()) {
        (false, _) => Ok(by_host),
        (true, [only]) => Ok(vec![only]),
        (true, _) => Err(format!("say whose document it is, with --provider: {}", names())),
    }
}

fn request(host: &str, base: &str, listed: &Listed) -> Option<http::Request<()>> {
    sample::request(host, &listed.method, &format!("{base}{}", openapi::filled(&listed.path, sample::ANY)))
}

/// The best of what its servers give it: on their own hosts, else on the provider's.
fn has(listed: &Listed, index: &Index<'_>, providers: &[&Provider]) -> Has {
    let mut best = Has::Nothing;
    for server in &listed.servers {
        let named = server.authority.as_deref().into_iter();
        let hosts = named.chain(providers.iter().filter_map(|provider| Some(provider.hosts.first()?.value.as_str())));
        for host in hosts {
            let Some(request) = request(host, &server.base, listed) else { continue };
            let of_these =
                |found: &Found<'_>| providers.iter().any(|provider| provider.name.value == found.provider.name.value);
            let has = match index.of(&request).filter(of_these) {
                Some(Found { provider, operation, .. }) if operation.is_rest => Has::Rest(provider.name.value.clone()),
                Some(Found { provider, operation, .. }) => {
                    Has::Operation(provider.name.value.clone(), operation.name.value.clone())
                }
                None => Has::Nothing,
            };
            best = best.min(has);
        }
    }
    best
}

/// Whether one of the document's operations is for a request of this operation too: where the document has a parameter,
/// and the contract a text.
fn is_listed(operation: &Operation, paths: &Paths) -> bool {
    let mut matchers = operation.matches.iter().filter_map(|text| Matcher::parse(text).ok());
    matchers.any(|matcher| paths.has(matcher.method.as_ref(), &sample::path(&matcher.path)))
}

fn human(compared: &Compared<'_>, command: &Coverage, loaded: &Loaded, terminal: &Terminal) -> String {
    let mut out = String::new();
    let lacking: Vec<_> = compared.lacks(command.allow_rest).collect();
    if !lacking.is_empty() {
        out.push_str(&format!("{}\n", terminal.bad("operations without a contract")));
        for (listed, has) in &lacking {
            let id = listed.id.as_ref().map_or(String::new(), |id| format!(" ({})", Redacted(id)));
            let has = match has {
                Has::Rest(provider) => format!("no more than {provider}'s own settings"),
                Has::Operation(..) | Has::Nothing => "sent once".to_owned(),
            };
            out.push_str(&format!("  {} {}{id}: {has}\n", listed.method, Redacted(&listed.path)));
        }
    }
    if !compared.unused.is_empty() {
        out.push_str(&format!("{}\n", terminal.bad("contracts without an operation")));
        for (provider, operation) in &compared.unused {
            let matched = operation.matches.iter().map(|text| text.value.as_str()).collect::<Vec<_>>().join(", ");
            let line = loaded.sources.line(operation.name.place);
            let (provider, operation) = (&provider.name.value, &operation.name.value);
            out.push_str(&format!("  {provider} {operation}: {matched} ({line})\n"));
        }
    }
    let summary = format!(
        "{} of {} have a contract; {} without an operation",
        compared.listed.len() - lacking.len(),
        counted(compared.listed.len(), "operation"),
        counted(compared.unused.len(), "contract"),
    );
    out.push_str(&format!("{}\n", terminal.bold(&summary)));
    out
}

fn json(compared: &Compared<'_>, loaded: &Loaded) -> String {
    let operations = compared.listed.iter().map(|(listed, has)| {
        let (provider, operation) = match has {
            Has::Operation(provider, operation) => (Some(provider), Some(operation)),
            Has::Rest(provider) => (Some(provider), None),
            Has::Nothing => (None, None),
        };
        serde_json::json!({
            "method": listed.method.as_str(),
            "path": listed.path,
            "id": listed.id,
            "provider": provider,
            "operation": operation,
        })
    });
    let unused = compared.unused.iter().map(|(provider, operation)| {
        serde_json::json!({
            "provider": provider.name.value,
            "operation": operation.name.value,
            "matches": operation.matches.iter().map(|text| &text.value).collect::<Vec<_>>(),
            "place": loaded.sources.line(operation.name.place),
        })
    });
    let value = serde_json::json!({
        "operations": operations.collect::<Vec<_>>(),
        "without_an_operation": unused.collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}
