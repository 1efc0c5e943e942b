//! `redial matrix`

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header::CONTENT_TYPE};

use super::{
    End,
    arguments::{Matrix, Shape},
    input,
    terminal::Terminal,
    words,
};
use crate::{
    Class, FaultKind, GrpcCode, Policy, StopReason,
    contract::{
        Groups, Loaded,
        ask::{Supposed, When, ask, proves_unsent},
        resolve::Operation,
        routing::Matcher,
        settings::{Answer, When as Conditions},
    },
};

/// What is always shown beside what the contract names.
const STATUSES: [u16; 7] = [408, 429, 500, 502, 503, 504, 404];

/// What becomes of one outcome of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
    Repeated,
    /// Only with a key or another evidence that this request does not have.
    WithEvidence,
    Verify,
    Success,
    No,
}

impl Cell {
    const fn as_str(self) -> &'static str {
        match self {
            Cell::Repeated => "yes",
            Cell::WithEvidence => "evidence",
            Cell::Verify => "verify",
            Cell::Success => "success",
            Cell::No => "no",
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Status(StatusCode),
    Fault(FaultKind),
    Code(GrpcCode),
}

impl Column {
    pub(super) fn name(self) -> String {
        match self {
            Column::Status(status) => status.as_u16().to_string(),
            Column::Fault(kind) => kind.to_string(),
            Column::Code(code) => code.to_string(),
        }
    }
}

struct Row {
    operation: String,
    method: Method,
    /// And whether a rule that reads more than the number may say otherwise.
    cells: Vec<(Cell, bool)>,
}

pub(super) fn run(command: &Matrix, terminal: &Terminal) -> End {
    let loaded = match input::builder(&command.input) {
        Ok(builder) => builder.load_with(Groups::default()),
        Err(message) => {
            terminal.err(&format!("redial: {message}\n"));
            return End::Unreadable;
        }
    };
    match loaded {
        Ok(loaded) => {
            let columns = columns(&[&loaded]);
            let rows = rows(&loaded, &columns);
            terminal.out(&match command.format {
                Shape::Human => table(&columns, &rows, &loaded),
                Shape::Json => json(&columns, &rows),
            });
            End::Kept
        }
        Err(error) => {
            terminal.err(&format!("{error}\n"));
            End::of(&error)
        }
    }
}

fn operations<'a>(contracts: &[&'a Loaded]) -> impl Iterator<Item = &'a Operation> + Clone {
    let providers: Vec<_> = contracts.iter().flat_map(|loaded| &loaded.resolved.providers).collect();
    providers.into_iter().flat_map(|provider| &provider.operations)
}

/// The statuses that the contracts or the usual set name, every fault, and the codes of gRPC that the contracts name.
pub(super) fn columns(contracts: &[&Loaded]) -> Vec<Column> {
    let mut statuses: BTreeSet<u16> = STATUSES.into();
    for operation in operations(contracts) {
        let settings = &operation.settings;
        let lists = [settings.transient.as_ref(), settings.business.as_ref()].into_iter().flatten();
        let listed = lists.flat_map(|list| list.status.iter()).flat_map(|list| &list.value);
        statuses.extend(listed.map(|status| status.value.0));
        let rules = settings.answer.iter().flat_map(|answers| &answers.value);
        let ruled = rules.filter_map(|rule| rule.when.as_ref()?.status.as_ref()).flat_map(|statuses| statuses.iter());
        statuses.extend(ruled.map(|status| status.value.0));
    }
    let statuses = statuses.into_iter().filter_map(|status| StatusCode::from_u16(status).ok()).map(Column::Status);
    let faults = FaultKind::ALL.into_iter().filter(|kind| *kind != FaultKind::Unclassified).map(Column::Fault);
    statuses.chain(faults).chain(codes(contracts).into_iter().map(Column::Code)).collect()
}

/// The codes of gRPC that the contracts name; without one, they are about none.
fn codes(contracts: &[&Loaded]) -> Vec<GrpcCode> {
    let lists = operations(contracts)
        .flat_map(|operation| [&operation.settings.transient, &operation.settings.business])
        .flatten();
    let named = lists.flat_map(|list| list.grpc.iter()).flat_map(|list| &list.value);
    let named: Vec<GrpcCode> = named.map(|code| code.name().code()).collect();
    GrpcCode::ALL.into_iter().filter(|code| named.contains(code)).collect()
}

fn rows(loaded: &Loaded, columns: &[Column]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (at, provider) in loaded.resolved.providers.iter().enumerate() {
        for (number, operation) in provider.operations.iter().enumerate() {
            let Some(policy) = loaded.policy(at, number) else { continue };
            for method in methods(operation) {
                let mut request = Request::new(());
                *request.method_mut() = method.clone();
                let cells = columns.iter().map(|column| {
                    let status = match column {
                        Column::Status(status) => Some(*status),
                        Column::Fault(_) | Column::Code(_) => None,
                    };
                    let speaks = |status| conditional(operation).any(|(rule, _)| speaks_of(rule, status));
                    (cell(policy, &request, *column), status.is_some_and(speaks))
                });
                let cells = cells.collect();
                let operation = format!("{} {}", provider.name.value, operation.name.value);
                rows.push(Row { operation, method, cells });
            }
        }
    }
    rows
}

/// The operation's own methods; where it has any, one that is idempotent and one that is not.
pub(super) fn methods(operation: &Operation) -> Vec<Method> {
    let mut methods: Vec<Method> = Vec::new();
    for method in operation.matches.iter().filter_map(|text| Matcher::parse(text).ok()?.method) {
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    if methods.is_empty() { vec![Method::GET, Method::POST] } else { methods }
}

/// As the engine decides after a first attempt of this request.
pub(super) fn cell(policy: &dyn Policy, request: &Request<()>, column: Column) -> Cell {
    let mut request = request.clone();
    let supposed = match column {
        Column::Status(status) => Supposed::Answer { status, headers: HeaderMap::new(), body: Vec::new() },
        Column::Fault(kind) => Supposed::Fault { kind, unsent: proves_unsent(kind) },
        Column::Code(code) => {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
            let headers =
                HeaderMap::from_iter([(HeaderName::from_static("grpc-status"), HeaderValue::from(code as u16))]);
            Supposed::Answer { status: StatusCode::OK, headers, body: Vec::new() }
        }
    };
    let asked = ask(policy, &request, &supposed, When::default());
    match (&asked.decision, asked.verdict.class()) {
        (_, Class::Success) => Cell::Success,
        (Ok(_), _) => Cell::Repeated,
        // What is never repeated is not repeated with evidence either.
        (Err(stop), _) if stop.reason == StopReason::NoEvidence && asked.plan.max_attempts() > 1 => Cell::WithEvidence,
        (Err(stop), _) if stop.reason == StopReason::Verify => Cell::Verify,
        _ => Cell::No,
    }
}

/// Rules that read more than the number.
fn conditional(operation: &Operation) -> impl Iterator<Item = (&Answer, &Conditions)> {
    let rules = operation.settings.answer.iter().flat_map(|answers| &answers.value);
    rules.filter_map(|rule| {
        let when = rule.when.as_ref().map(|when| &when.value)?;
        (when.header.is_some() || when.body.is_some() || when.after.is_some()).then_some((&rule.value, when))
    })
}

fn speaks_of(rule: &Answer, status: StatusCode) -> bool {
    let statuses = rule.when.as_ref().and_then(|when| when.status.as_ref());
    statuses.is_some_and(|statuses| statuses.iter().any(|listed| listed.value.0 == status.as_u16()))
}

/// Rows are operations, so that a change of one is one line of a review.
fn table(columns: &[Column], rows: &[Row], loaded: &Loaded) -> String {
    let mut out = String::from("| operation | method |");
    for column in columns {
        out.push_str(&format!(" {} |", column.name()));
    }
    out.push_str(&format!("\n| --- | --- |{}\n", " --- |".repeat(columns.len())));
    for row in rows {
        out.push_str(&format!("| {} | {} |", words::cell(&row.operation), row.method));
        for (cell, conditional) in &row.cells {
            out.push_str(&format!(" {}{} |", cell.as_str(), if *conditional { "*" } else { "" }));
        }
        out.push('\n');
    }
    out.push_str(
        "\nyes: repeated. evidence: repeated with a key or another evidence that it is safe. verify: final, look before \
         repeating. no: final.\nAfter a first attempt without a key, within budget and time; connect, dns, refused-stream and \
         goaway where the client proves that nothing was sent.\n",
    );
    let notes = notes(loaded);
    if !notes.is_empty() {
        out.push_str("*: unless a rule says otherwise:\n");
        notes.iter().for_each(|note| out.push_str(&format!("- {note}\n")));
    }
    out
}

/// The rules behind the asterisks, each once.
fn notes(loaded: &Loaded) -> Vec<String> {
    let mut notes = Vec::new();
    for operation in loaded.resolved.providers.iter().flat_map(|provider| &provider.operations) {
        for (rule, when) in conditional(operation) {
            let statuses =
                when.status.iter().flat_map(|statuses| statuses.iter()).map(|status| status.value.0.to_string());
            let mut conditions = vec![statuses.collect::<Vec<_>>().join(" or ")];
            let headers = when.header.iter().flat_map(|named| &named.value.0);
            conditions.extend(headers.map(|(name, _)| format!("by `{}`", name.value)));
            conditions.extend(
                when.body.iter().map(|body| {
                    format!("by `{}` in its body", body.json.as_ref().map_or("", |json| json.value.as_str()))
                }),
            );
            conditions.extend(when.after.iter().map(|_| "after an attempt of unknown effect".to_owned()));
            let means = rule.means.as_ref().map_or("", |means| means.as_str());
            let place = rule.when.as_ref().map_or(String::new(), |when| loaded.sources.line(when.place));
            let note = format!("{}: {means} ({place})", conditions.join(", "));
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

fn json(columns: &[Column], rows: &[Row]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let cells = columns.iter().zip(&row.cells).map(|(column, (cell, conditional))| {
                (column.name(), serde_json::json!({ "repeated": cell.as_str(), "unless_a_rule": conditional }))
            });
            let cells: serde_json::Map<String, serde_json::Value> = cells.collect();
            serde_json::json!({ "operation": row.operation, "method": row.method.as_str(), "after": cells })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::Array(rows))
}
