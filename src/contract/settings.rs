//! What can be said for a file, a provider or an operation: the settings, each inherited by what is more specific.

use super::{
    names::{After, Basis, BudgetName, FaultName, HoldName, JitterName, Means, UnitName, Where},
    place::{At, Place},
    read::{Keys, Named, OneOrMore, Read, Reader},
    scalar::{Attempts, Code, Header, HeaderTest, Scalar, Status, Time},
    table::{inherits, replaces, table},
};

table! {
    /// Settings, for a file's providers, a provider or an operation.
    Settings {
        /// How long (S8).
        timeouts: Timeouts,
        /// Attempts in all, the first included (S12).
        attempts: Attempts,
        /// The waits between attempts (S9 to S11).
        backoff: Backoff,
        /// The extra load that retries may be (S20).
        budget: Budget,
        /// What may pass by itself (S1, S4). Nothing else is repeated.
        transient: Failures,
        /// What is known and final (S5, S18).
        business: Failures,
        /// What the server says about repeating (S17).
        server: Server,
        /// The idempotency key (S7).
        key: Key,
        /// Why repeating is safe (S7).
        idempotent: Idempotent,
        /// What else retries on the path (S13). An empty list says: nothing.
        elsewhere: Vec<At<Elsewhere>>,
        /// Which calls wait when one was told to (S17). Default: `retries`.
        hold: HoldName,
        /// Never repeated, and why.
        never: String,
        /// What instead, when all is over (S19); `none` says that there is nothing.
        fallback: String,
        /// Rules that read more of an answer than its number (S6). An operation's are tried before its provider's.
        answer: Vec<At<Answer>>,
    }
}

table! {
    /// How long. `attempt` and `total` are asked for; key by key, an operation inherits what it does not say.
    Timeouts {
        /// One attempt, up to its response head.
        attempt: Time,
        /// The whole call, waits included, up to the response head that is returned (D30). At most a day.
        total: Time,
        /// One connection: for the client, which makes them.
        connect: Time,
        /// The longest silence within a response body: for `TimeoutLayer`.
        body_idle: Time,
    }
}

table! {
    /// Exponential backoff with jitter. `initial`, `multiplier` and `max` are asked for.
    Backoff {
        /// The first unjittered wait.
        initial: Time,
        /// By what each wait is longer than the one before: 1.0 or more.
        multiplier: f64,
        /// No wait is longer. At most a day.
        max: Time,
        /// No wait is shorter, jitter included. Default: 50 ms.
        floor: Time,
        /// How waits are spread. Default: `full`.
        jitter: JitterName,
        /// Why waits are not spread, where `jitter` is `none` (S10).
        reason: String,
    }
}

table! {
    /// A named setting with its own numbers, or numbers alone. Replaces an inherited one as a whole.
    Budget {
        /// The named setting.
        setting: BudgetName,
        /// Providers and operations of one group share one budget and one hold. Default: the provider's name.
        group: String,
        /// Why there is none, where `setting` is `unlimited`.
        reason: String,
        /// The most tokens the bucket holds (without a setting, and for `aws`). Default: 5; for `aws`, 500.
        capacity: f64,
        /// The tokens it starts with. Default: `capacity`.
        initial: f64,
        /// Tokens that a retry costs. Default: 1.
        cost: f64,
        /// Tokens that a retry costs after "too many requests". Default: `cost`.
        throttled_cost: f64,
        /// Tokens that each first try brings.
        per_first_try: f64,
        /// Tokens that each first try brings when it succeeds.
        per_first_success: f64,
        /// Tokens that each retry brings when it succeeds.
        per_retry_success: f64,
        /// Tokens that each failed attempt takes.
        per_failure: f64,
        /// Whether a retry that succeeds gives its own cost back.
        refund_on_success: bool,
        /// Tokens that time brings, per second.
        refill_per_second: f64,
        /// Retries only while the level is above this share of `capacity`.
        open_above: f64,
        /// `grpc`: the most tokens.
        max_tokens: f64,
        /// `grpc`: tokens that a success brings.
        token_ratio: f64,
        /// `finagle`: forget what is older. 1s to 60s.
        ttl: Time,
        /// `finagle`: retries per second beside the share.
        min_per_second: u32,
        /// `finagle`: retries for each first try.
        percent: f64,
    }
}

table! {
    /// Statuses, faults and gRPC codes.
    Failures {
        /// HTTP statuses. A 4xx other than 408, 425 and 429 that is transient needs a rule with a reason: see `answer`.
        status: Vec<At<Status>>,
        /// Faults on the wire.
        faults: Vec<At<FaultName>>,
        /// gRPC codes, by name; `{ code, because }` or `{ code, rejected }` where a reason is asked for.
        grpc: Vec<At<Code>>,
    }
}

table! {
    /// What the server's own headers say. `Retry-After` is always heeded.
    Server {
        /// Headers that say how long to wait, asked before `Retry-After`.
        wait: Vec<At<WaitHeader>>,
        /// Headers that say when a limit resets, asked after `Retry-After`.
        reset: Vec<At<WaitHeader>>,
        /// A header that says `true` or `false`: repeat or do not (D19).
        should_retry: Header,
        /// The longest wait that a server may ask for; a longer one ends the call (D1). Default: the deadline.
        longest_wait: Time,
    }
}

table! {
    /// A header, and its unit (D18).
    WaitHeader {
        /// Its name.
        header: Header,
        /// In what it says when to come back.
        unit: UnitName,
    }
}

table! {
    /// The idempotency key.
    Key {
        /// The header that carries it. Default: `idempotency-key`.
        header: Header,
        /// For how long the provider honours it.
        valid_for: Time,
        /// Whether a repeat with it is given the saved answer again, failures too (D31).
        replays: bool,
    }
}

table! {
    /// Evidence that a repeat is safe (S7), beside the method.
    Idempotent {
        /// Why this operation may be repeated, in words.
        stated: String,
        /// The caller always sends the key.
        key: bool,
        /// Headers by which a repeat fails instead of taking effect twice, such as `if-match`.
        headers: Vec<At<Header>>,
        /// Query parameters of the same effect, such as `ifGenerationMatch`.
        query: Vec<At<String>>,
        /// `false`: not idempotent here, whatever the method is: none is evidence.
        method: bool,
    }
}

table! {
    /// Something else that retries on the path.
    Elsewhere {
        /// What it is.
        place as "where": Where,
        /// Its name.
        by: String,
        /// How many attempts it makes in all; 1 says that its retries are switched off.
        attempts: u32,
    }
}

table! {
    /// What an answer means, told by more than its number. Rules are tried in order; the first that matches wins.
    Answer {
        /// Which answers. All conditions have to hold.
        when: When,
        /// What they mean.
        means: Means,
        /// How long to wait, at the least.
        wait: Wait,
        /// On what the rule rests. Asked for; what does not say it is taken for `project`.
        basis: Basis,
        /// Why, and where it is documented. For `official` rules the provider's `contract.url` stands in.
        because: String,
    }
}

table! {
    /// The conditions of a rule.
    When {
        /// The answer has one of these statuses.
        status: OneOrMore<Status>,
        /// And these headers, each with a text, or `true` for whatever it says.
        header: Named<HeaderTest>,
        /// And this in its body: at most 8 KiB of an error answer are looked into.
        body: BodyTest,
        /// And an earlier attempt may have taken effect.
        after: After,
    }
}

table! {
    /// A test of one value in a JSON body.
    BodyTest {
        /// Where: a JSON pointer (RFC 6901).
        json: String,
        /// The text there contains this one.
        contains: String,
        /// The value there is this one.
        equals: Scalar,
    }
}

table! {
    /// How long to wait after an answer.
    Wait {
        /// The header that says it.
        header: Header,
        /// In which unit.
        unit: UnitName,
        /// At least this long, as the provider documents.
        at_least: Time,
        /// This long where the header is not there, or cannot be read. Default: the backoff alone decides.
        otherwise: Time,
    }
}

inherits!(Timeouts, Backoff, Failures, Server, Key, Idempotent);
replaces!(Budget, WaitHeader, Elsewhere, Answer, When, BodyTest, Wait);
