import type { Result } from "./client.ts";

/** A run as the list shows it. */
export type Run = Result<"GET", "/api/runs">["runs"][number];
/** A question to a person, with the run that asks. */
export type Approval = Result<"GET", "/api/approvals">["approvals"][number];
export type Facts = Result<"GET", "/api/facts">;
export type DeadLetter = Result<"GET", "/api/dead-letters">["deadLetters"][number];
export type Snapshot = Result<"GET", "/api/runs/{runId}/snapshot">;
