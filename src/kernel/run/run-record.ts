import { Fault } from "../base/fault.ts";
import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";
import type { RunFlow } from "../limits/flow-control.ts";
import type { Priority } from "../limits/priority.ts";
import { noUsage, type Usage } from "../messages/usage.ts";
import type { UnreportedSpend } from "./run-result.ts";

/**
 * The kinds of runs: `invocation` answers an input, `compaction` summarises a session, `child` shares the prompt of
 * an invocation (`Runtime.spawnChild`), `workflow` executes a durable function, which has no session, and `gateway`
 * pays for the model requests of other programs. Stores save the index of a kind in this list, so that a new kind
 * must be added at the end.
 */
export const runKinds = Object.freeze(["invocation", "compaction", "child", "workflow", "gateway"] as const);

/** What a run does. */
export type RunKind = (typeof runKinds)[number];

/** What a store knows about a run without reading its commits. Used to schedule the run and to find its agent. @advanced */
export interface RunRecord {
  /** Id of the run. */
  readonly runId: RunId;
  /** What the run does. */
  readonly kind: RunKind;
  /** Id of the root agent. */
  readonly agentId: AgentId;
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the tenant. `null` for a run without a tenant. */
  readonly tenantId: string | null;
  /** Id of the user. `null` for a run without a user. */
  readonly userId: string | null;
  /** Priority of the run. */
  readonly priority: Priority;
  /** J9: version of the agent that started the run. `null` if the agent declares none. */
  readonly agentVersion: string | null;
  /**
   * The beginning of the text of the run's input, as `runTitle` returns it. `null` if the input has no text, or if
   * the retention of the run does not keep the text (`HistoryRetention.NONE` and `RUN`).
   */
  readonly title: string | null;
  /** Data that the caller passed to `submit`. Empty after the end of a run with `HistoryRetention.NONE`. */
  readonly metadata: JsonObject;
  /** Time of creation, in epoch milliseconds. */
  readonly createdAt: number;
  /** L9: time before which the run does not start, in epoch milliseconds. `null` for a run that starts at once. */
  readonly startAt: number | null;
  /** L7: how often a worker was lost while it owned the run. 0 for a new run. */
  readonly recoveries: number;
  /** L21: name of the machine to which a program has bound the run. Absent if any worker may claim it. */
  readonly host?: string;
  /** L17: the limits of concurrency and rate that apply to the run. Absent if no limits apply. */
  readonly flow?: RunFlow;
}

/**
 * L5: returns a text that identifies the user and the agent of a run. Workers take turns between the runs of a
 * tenant with different texts.
 */
export function turnKey({ userId, agentId }: Pick<RunRecord, "userId" | "agentId">): string {
  return userId === null ? agentId : `${agentId} ${userId}`;
}

/** L9: whether a run was created with a later start time, so that no worker may claim it yet. @advanced */
export function startsLater({ startAt, createdAt }: Pick<RunRecord, "startAt" | "createdAt">): boolean {
  return startAt !== null && startAt > createdAt;
}

/** What a run has used. A fork starts with nothing. */
export interface RunSpend {
  /** Usage of all tasks of the run, as providers reported it. */
  readonly usage: Usage;
  /** Total charge, including `unreported`. `null` if a price is unknown. */
  readonly costUsd: number | null;
  /** B3: charge for calls that ended without reported usage. */
  readonly unreported: UnreportedSpend;
  /** Number of turns of all tasks of the run. */
  readonly turns: number;
}

/** The usage of a run before its first model call. @advanced */
export const nothingSpent: RunSpend = Object.freeze({
  usage: noUsage,
  costUsd: 0,
  unreported: Object.freeze({ tokens: 0, costUsd: 0 }),
  turns: 0,
});

/**
 * The reasons for which a run waits:
 *
 * - `person`: an approval, the answer to a question, the result of a client-side tool, or a top-up.
 * - `signal`: a signal, by `RunHandle.signal`.
 * - `time`: the end of a sleep or of a timeout.
 * - `message`: the reply of an agent that was asked.
 * - `run`: the end of another run, which it has started.
 * - `seat`: a seat for a task that is pending or was preempted.
 * - `budget`: dollars, tokens or turns that other calls of the run have reserved.
 * - `cap`: an amount of a spending cap that open calls of other runs have reserved (B7).
 * - `worker`: a worker that claims the run.
 * - `queue`: its turn among the runs of its concurrency or rate key (L17).
 * - `compaction`: the end of a compaction of its session (S5).
 * - `crash_loop`: `RunHandle.resume`, because the processes that executed the run ended again and again (L7).
 * - `host`: a worker of the machine to which the run is bound (L21).
 */
export const waitCauses = Object.freeze([
  "person",
  "signal",
  "time",
  "message",
  "run",
  "seat",
  "budget",
  "cap",
  "worker",
  "queue",
  "compaction",
  "crash_loop",
  "host",
] as const);

/** What a run waits for. @advanced */
export type WaitCause = (typeof waitCauses)[number];

/** The status of a run that has not ended, as its owner knows it. @advanced */
export interface RunStanding {
  /** `waiting`: every task that has not ended waits. `paused`: no step starts until `RunHandle.resume`. */
  readonly status: "running" | "waiting" | "paused";
  /**
   * The reasons for which the tasks of a waiting run wait, in the order of `waitCauses`. `crash_loop` for a run
   * that is paused as a crash loop. Otherwise empty.
   */
  readonly waitsFor: readonly WaitCause[];
}

/** Maximum length of the title of a run, in code points. */
export const longestTitle = 80;

/**
 * Returns the first `longestTitle` code points of a text as one line: each sequence of white space and control
 * characters becomes one space. Returns `null` if the text contains nothing else.
 */
export function runTitle(text: string): string | null {
  let title = "";
  let length = 0;
  for (const character of text) {
    const isBlank = character <= " " || (character > "~" && /[\s\p{Cc}]/u.test(character));
    if (isBlank && (title === "" || title.endsWith(" "))) continue;
    title += isBlank ? " " : character;
    length++;
    if (length === longestTitle) break;
  }
  const line = title.trimEnd().toWellFormed();
  return line === "" ? null : line;
}

/** S6: returns the fault of a call with the id of a run that does not exist for the caller. */
export function missingRun(runId: RunId): Fault {
  return new Fault("not_found", `run ${runId} does not exist in this store`);
}
