-- The table of jobs, for PostgreSQL 12 or later. Times are milliseconds since 1970 by the database's clock.
CREATE TABLE "redial_jobs" (
    id              BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_type        TEXT    NOT NULL,
    target          TEXT    NOT NULL,
    payload         TEXT    NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('PENDING', 'PROCESSING', 'COMPLETED', 'FAILED', 'DEAD')),
    provider        TEXT,
    origin          TEXT    NOT NULL CHECK (origin IN ('ENQUEUED', 'RECOVERED', 'REVIVED', 'IMPORTED')),
    -- 1: none is enqueued once one has COMPLETED.
    once            BIGINT  NOT NULL DEFAULT 0,
    -- How long after a COMPLETED one none is enqueued.
    unique_ms       BIGINT  NOT NULL DEFAULT 0,
    -- Which of its chain it is.
    attempt         BIGINT  NOT NULL DEFAULT 1,
    snoozes         BIGINT  NOT NULL DEFAULT 0,
    -- Its earliest start.
    run_at          BIGINT  NOT NULL,
    worker          TEXT,
    -- The fencing token: rises with each claim.
    token           BIGINT  NOT NULL DEFAULT 0,
    lease_until     BIGINT,
    failure_class   TEXT,
    error           TEXT,
    -- The attempts of HTTP, as JSON.
    history         TEXT,
    -- Failures, and ghosts, of the target since its last COMPLETED, as counted when this one ended.
    failures        BIGINT  NOT NULL DEFAULT 0,
    ghosts          BIGINT  NOT NULL DEFAULT 0,
    outcome_unknown BIGINT  NOT NULL DEFAULT 0,
    unknown_before  BIGINT  NOT NULL DEFAULT 0,
    dead_reason     TEXT,
    -- The intent to repair it: when recovery looks at it.
    retry_at        BIGINT,
    -- The provider's word: no successor starts earlier.
    not_before      BIGINT,
    parent_id       BIGINT,
    root_id         BIGINT,
    -- What its idempotency keys are made of, and when a job of the chain was first claimed. 0: none was yet.
    chain           TEXT    NOT NULL,
    chain_at        BIGINT  NOT NULL,
    trace           TEXT,
    created_at      BIGINT  NOT NULL,
    started_at      BIGINT,
    finished_at     BIGINT
)
-- Rows are rewritten as they move from state to state: room for it in the same page, and dead ones swept out early, so
-- that the claim stays as fast as it was.
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- At most one active job for each target.
CREATE UNIQUE INDEX "redial_jobs_live" ON "redial_jobs" (job_type, target) WHERE state IN ('PENDING', 'PROCESSING');
-- At most one in all, where one that COMPLETED is enough.
CREATE UNIQUE INDEX "redial_jobs_once" ON "redial_jobs" (job_type, target)
    WHERE once = 1 AND state IN ('PENDING', 'PROCESSING', 'COMPLETED');
-- At most one successor for each failure.
CREATE UNIQUE INDEX "redial_jobs_successor" ON "redial_jobs" (parent_id) WHERE parent_id IS NOT NULL;
-- The claim.
CREATE INDEX "redial_jobs_ready" ON "redial_jobs" (job_type, run_at, id) WHERE state = 'PENDING';
-- Ghosts.
CREATE INDEX "redial_jobs_lease" ON "redial_jobs" (lease_until) WHERE state = 'PROCESSING';
-- Failures to repair, of each provider the longest due first.
CREATE INDEX "redial_jobs_due" ON "redial_jobs" (provider, retry_at, id) WHERE state = 'FAILED' AND retry_at IS NOT NULL;
-- What a person must look at.
CREATE INDEX "redial_jobs_dead" ON "redial_jobs" (job_type) WHERE state = 'DEAD';
-- The history of a target, and that of a chain.
CREATE INDEX "redial_jobs_target" ON "redial_jobs" (job_type, target, id);
CREATE INDEX "redial_jobs_chain" ON "redial_jobs" (root_id) WHERE root_id IS NOT NULL;
-- How a provider does.
CREATE INDEX "redial_jobs_provider" ON "redial_jobs" (provider, finished_at, id)
    WHERE provider IS NOT NULL AND finished_at IS NOT NULL;
CREATE INDEX "redial_jobs_canary" ON "redial_jobs" (provider)
    WHERE origin = 'RECOVERED' AND state IN ('PENDING', 'PROCESSING');

-- Who made the last sweep, and when the next one is due.
CREATE TABLE "redial_jobs_ticks" (
    name    TEXT   PRIMARY KEY,
    next_at BIGINT NOT NULL
);

-- What is not claimed for now. No end: until somebody resumes it.
CREATE TABLE "redial_jobs_pauses" (
    scope    TEXT   NOT NULL CHECK (scope IN ('type', 'provider')),
    name     TEXT   NOT NULL,
    until_at BIGINT,
    PRIMARY KEY (scope, name)
);
