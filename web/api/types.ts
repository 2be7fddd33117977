import type { Query, Result } from "./client.ts";

/** A run as the list shows it. */
export type Run = Result<"GET", "/api/runs">["runs"][number];
/** The filters of the server for runs. */
export type RunQueryValues = Query<"GET", "/api/run-count">;
/** A question to a person, with the run that asks. */
export type Approval = Result<"GET", "/api/approvals">["approvals"][number];
/** The tokens and the open requests of a gateway run. */
export type GatewayRun = NonNullable<Result<"GET", "/api/gateway/runs/{runId}">>;
export type Facts = Result<"GET", "/api/facts">;
export type DeadLetter = Result<"GET", "/api/dead-letters">["deadLetters"][number];
/** What waits for the person. */
export type Inbox = Result<"GET", "/api/inbox">;
export type AgentInfo = Result<"GET", "/api/agents">["agents"][number];
export type Session = Result<"GET", "/api/sessions">["sessions"][number];
export type SessionTree = Result<"GET", "/api/sessions/{sessionId}/tree">;
export type Schedule = Result<"GET", "/api/schedules">["schedules"][number];
export type UsageOverTime = Result<"GET", "/api/usage/over-time">;
export type Snapshot = Result<"GET", "/api/runs/{runId}/snapshot">;
export type RunFigures = Result<"GET", "/api/figures">["figures"][number];
/** The settings that the caller may change for one run of an agent. */
export type AgentOptions = Result<"GET", "/api/agents/{name}/options">;
/** What a model call was sent. */
export type SentCall = Result<"GET", "/api/runs/{runId}/requests/{seq}">;
/** An experiment as the list shows it. */
export type ListedExperiment = Result<"GET", "/api/experiments">["experiments"][number];
/** An experiment with its cases by variants. */
export type Experiment = Result<"GET", "/api/experiments/{runId}">;
/** The trials of a case of an experiment. */
export type ExperimentCase = Result<"GET", "/api/experiments/{runId}/cases">;
