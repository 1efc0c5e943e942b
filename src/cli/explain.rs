//! `redial explain`

use http::{HeaderMap, Request};

use super::{
    End,
    arguments::Explain,
    index::{Found, Index},
    input,
    terminal::Terminal,
};
use crate::{
    Class, Evidence, Reach, StopReason,
    contract::{
        Loaded,
        ask::{Asked, Supposed, When, ask, is_grpc, proves_unsent},
        duration::shown,
        place::{Level, Place},
        resolve::Operation,
    },
    redact::Redacted,
};

pub(super) fn run(command: &Explain, terminal: &Terminal) -> End {
    let explained = input::loaded(&command.contract, terminal)
        .and_then(|loaded| explained(command, &loaded).map_err(|message| input::unreadable(&message, terminal)));
    match explained {
        Ok(text) => {
            terminal.out(&text);
            End::Kept
        }
        Err(end) => end,
    }
}

fn explained(command: &Explain, loaded: &Loaded) -> Result<String, String> {
    let mut request = Request::new(());
    *request.method_mut() = command.method.clone();
    *request.uri_mut() = command.url.clone();
    request.headers_mut().extend(command.headers.iter().map(|(name, value)| (Some(name.clone()), value.clone())));
    if command.url.host().is_none() {
        return Err("the URL has no host: write it whole, as https://api.example.com/orders".to_owned());
    }
    let supposed = match (command.status, command.fault) {
        (Some(status), _) => {
            let mut headers = HeaderMap::new();
            headers.extend(command.answer_headers.iter().map(|(name, value)| (Some(name.clone()), value.clone())));
            Supposed::Answer { status, headers, body: command.answer_body.clone().unwrap_or_default().into_bytes() }
        }
        (None, Some(kind)) => Supposed::Fault { kind, unsent: command.unsent || proves_unsent(kind) },
        (None, None) => return Err("say how the attempt ended: --status or --fault".to_owned()),
    };
    let when = When { attempt: command.attempt, after_unknown: command.after_unknown, elapsed: command.elapsed };
    let asked = ask(loaded.routes(), &request, &supposed, when);
    Ok(Story {
        loaded,
        index: Index::new(loaded),
        request: &request,
        command,
        supposed: &supposed,
        asked: &asked,
        is_grpc: is_grpc(&request),
        out: String::new(),
        step: 0,
    }
    .told())
}

/// The steps, in the engine's own order, up to the one that ends it.
struct Story<'a> {
    loaded: &'a Loaded,
    index: Index<'a>,
    request: &'a Request<()>,
    command: &'a Explain,
    supposed: &'a Supposed,
    asked: &'a Asked,
    is_grpc: bool,
    out: String,
    step: u32,
}

impl Story<'_> {
    fn told(mut self) -> String {
        let Some(found) = self.index.of(self.request) else {
            match self.index.of_host(self.request) {
                Some(provider) => {
                    let name = &provider.name.value;
                    let text = format!("no operation of `{name}` matches, and the others are sent once");
                    let place = provider.others.as_ref().map_or(provider.name.place, |others| others.place);
                    self.say("operation", &text, Some(place));
                }
                None => self.say("operation", "no provider has this host: the request is sent once", None),
            }
            return self.ended("not repeated: nothing names it (S1)");
        };
        let operation = found.operation;
        self.operation(found);
        self.verdict(operation);
        if self.asked.is_success() {
            return self.ended("the answer goes to the caller");
        }
        let stop = self.asked.decision.as_ref().err().map(|stop| stop.reason);
        let ends = |reasons: &[StopReason]| stop.is_some_and(|stop| reasons.contains(&stop));
        'steps: {
            if ends(&[StopReason::Permanent, StopReason::Verify, StopReason::Upgrade]) {
                break 'steps;
            }
            self.evidence(operation);
            if ends(&[StopReason::NoEvidence]) {
                break 'steps;
            }
            self.attempts(operation);
            if ends(&[StopReason::Attempts]) {
                break 'steps;
            }
            self.wait(operation);
            if ends(&[StopReason::ServerSaidNo, StopReason::WaitTooLong, StopReason::Deadline]) {
                break 'steps;
            }
            self.budget(operation);
        }
        let ending = match &self.asked.decision {
            Ok(_) => format!("repeated: attempt {} follows the wait", self.command.attempt + 1),
            Err(stop) => {
                let until = stop.not_before.filter(|wait| !wait.is_zero());
                let until = until.map_or(String::new(), |wait| format!("; not before {} from now", shown(wait)));
                format!("not repeated: {} ({}){until}", stop.reason.in_words(), stop.reason)
            }
        };
        self.ended(&ending)
    }

    fn say(&mut self, what: &str, text: &str, place: Option<Place>) {
        self.step += 1;
        let place = place.map_or("built in".to_owned(), |place| {
            let line = self.loaded.sources.line(place);
            if place.level == Level::File { line } else { format!("{line}, {}", place.level.as_str()) }
        });
        self.out.push_str(&format!("{}. {what:<10} {text}\n   {:<10} ({place})\n", self.step, ""));
    }

    fn ended(mut self, text: &str) -> String {
        self.out.push_str(&format!("=> {text}\n"));
        self.out
    }

    fn operation(&mut self, found: Found<'_>) {
        let Found { provider, operation, place } = found;
        let text = match operation.is_rest {
            true => format!("no operation of `{}` matches: the provider's own settings hold", provider.name.value),
            false => format!("`{}` of `{}`", operation.name.value, provider.name.value),
        };
        let grpc = ", a call of gRPC: `RetryChannel` reads its codes, a plain `RetryLayer` does not";
        self.say("operation", &format!("{text}{}", if self.is_grpc { grpc } else { "" }), Some(place));
    }

    /// Which rule or list decided: found by asking each of the engine's rules in its order.
    fn verdict(&mut self, operation: &Operation) {
        let settings = &operation.settings;
        let class = match (self.asked.verdict.class(), self.asked.verdict.rejected_because()) {
            (Class::Transient, Some(because)) => format!("rejected before it was processed ({because})"),
            (Class::Transient, None) => "transient".to_owned(),
            (Class::Verify, _) => "final, and to be verified: an earlier attempt may have worked".to_owned(),
            (Class::Success, _) => "success".to_owned(),
            (Class::Permanent, _) if self.asked.verdict.is_listed() => "final: a business answer".to_owned(),
            (Class::Permanent, _) => "final: nobody listed it (S1)".to_owned(),
        };
        let (what, place) = match self.supposed {
            Supposed::Answer { status, headers, body } => {
                let outcome = crate::Outcome::answer(*status, headers);
                let outcome = outcome.of_attempt(self.command.attempt, self.command.after_unknown).with_body(body);
                let rules = &self.asked.plan.operation.answers;
                let rule =
                    rules.iter().position(|rule| rule.judge(*status, &outcome, std::time::SystemTime::now).is_some());
                let written = settings.answer.as_ref().and_then(|answers| answers.value.get(rule?));
                let listed = [settings.transient.as_ref(), settings.business.as_ref()].into_iter().flatten();
                let listed = listed.flat_map(|list| list.status.iter()).flat_map(|list| &list.value);
                let listed =
                    listed.into_iter().find(|listed| listed.value.0 == status.as_u16()).map(|listed| listed.place);
                let place = written.map(|rule| rule.place).or(listed);
                match headers.get("grpc-status").filter(|_| self.is_grpc) {
                    Some(code) => (
                        format!("gRPC code {}", Redacted(&String::from_utf8_lossy(code.as_bytes()))),
                        place.or(self.code(operation)),
                    ),
                    None => (status.as_u16().to_string(), place),
                }
            }
            Supposed::Fault { kind, unsent } => {
                let listed = settings.transient.iter().flat_map(|list| list.faults.iter()).flat_map(|list| &list.value);
                let place = listed.into_iter().find(|listed| listed.kind() == *kind).map(|listed| listed.place);
                (format!("{kind}{}", if *unsent { ", provably not processed" } else { ", of unknown effect" }), place)
            }
        };
        self.say("verdict", &format!("{what}: {class}"), place);
    }

    /// The list that the answer's code of gRPC stands in.
    fn code(&self, operation: &Operation) -> Option<Place> {
        let Supposed::Answer { status, headers, .. } = self.supposed else { return None };
        let code = crate::Outcome::answer(*status, headers).over_grpc().grpc_code()?;
        let settings = &operation.settings;
        let lists = [settings.transient.as_ref(), settings.business.as_ref()].into_iter().flatten();
        let mut listed = lists.flat_map(|list| list.grpc.iter()).flat_map(|list| &list.value);
        listed.find(|listed| listed.name().code() == code).map(|listed| listed.place)
    }

    fn evidence(&mut self, operation: &Operation) {
        let settings = &operation.settings;
        let idempotent = settings.idempotent.as_ref();
        let (text, place) = match (self.asked.reach, self.asked.plan.evidence()) {
            (Reach::NotSent, _) => ("needs no evidence: it was provably not processed".to_owned(), None),
            (Reach::Rejected, _) => {
                ("needs no evidence: the provider documents that it was not processed".to_owned(), None)
            }
            (_, Some(Evidence::Method)) => (format!("{} is idempotent (RFC 9110, 9.2.2)", self.command.method), None),
            (_, Some(evidence @ Evidence::Key)) => (evidence.to_string(), settings.key.as_ref().map(|key| key.place)),
            (_, Some(evidence)) => (evidence.to_string(), idempotent.map(|idempotent| idempotent.place)),
            (_, None) => {
                let key = settings.key.as_ref().and_then(|key| key.header.as_ref());
                let key = key.map_or("idempotency-key", |key| key.value.0.as_str());
                let never = idempotent.and_then(|idempotent| idempotent.method.as_ref());
                let text =
                    format!("none: {} is not idempotent here, and the request has no `{key}`", self.command.method);
                (text, never.map(|never| never.place))
            }
        };
        self.say("evidence", &text, place);
    }

    fn attempts(&mut self, operation: &Operation) {
        let settings = &operation.settings;
        let place = match &settings.never {
            Some(never) => Some(never.place),
            None => settings.attempts.as_ref().map(|attempts| attempts.place),
        };
        let never = settings.never.as_ref().map_or(String::new(), |never| format!(": {}", never.value));
        let text = format!("{} of {}{never}", self.command.attempt, self.asked.plan.max_attempts());
        self.say("attempts", &text, place);
    }

    fn wait(&mut self, operation: &Operation) {
        let plan = &self.asked.plan;
        let timeouts = operation.settings.timeouts.as_ref();
        let total = timeouts.and_then(|timeouts| timeouts.total.as_ref()).map(|total| total.place);
        let left = plan.timeouts().total.saturating_sub(self.command.elapsed);
        let hint = self.asked.verdict.hint();
        if hint.retry == Some(false) {
            let server = operation.settings.server.as_ref().and_then(|server| server.should_retry.as_ref());
            return self.say("server", "says not to repeat", server.map(|server| server.place));
        }
        let told = hint.wait.filter(|wait| !wait.is_zero());
        if let Some(told) = told {
            let text = format!(
                "asks to wait {}; {} of the call's {} are left",
                shown(told),
                shown(left),
                shown(plan.timeouts().total)
            );
            self.say("server", &text, total);
        }
        if self.asked.decision.as_ref().is_err_and(|stop| stop.reason == StopReason::WaitTooLong) {
            return;
        }
        let backoff = &plan.operation.backoff;
        let retry = self.command.attempt - 1;
        let (least, most) = (backoff.shortest(retry), backoff.longest(retry));
        let place = operation.settings.backoff.as_ref().map(|backoff| backoff.place);
        let text = match told {
            Some(told) if told >= most => format!("the server's {}, lengthened by up to a fifth", shown(told)),
            Some(told) => {
                format!("{} to {}, and never less than the server's {}", shown(least), shown(most), shown(told))
            }
            None => format!("{} to {}; {} of the call are left", shown(least), shown(most), shown(left)),
        };
        self.say("wait", &text, place);
    }

    fn budget(&mut self, operation: &Operation) {
        let place = operation.settings.budget.as_ref().map(|budget| budget.place);
        let text = match &self.asked.decision {
            Ok(again) if again.free => {
                "not charged: the first repeat of an unsent request. It needs an open budget, as here it is taken to be"
                    .to_owned()
            }
            Ok(_) => "charged, if there is enough left; here it is taken to be full".to_owned(),
            Err(_) => "spent".to_owned(),
        };
        self.say("budget", &text, place);
    }
}
