import type { HostedAgent } from "./hosted-agent.ts";
import type { Clock } from "../base/clock.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { HistoryRetention } from "../limits/history-retention.ts";
import type { Delivery } from "../stores/inbox.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { Priority } from "../limits/priority.ts";
import type { RunHandle } from "./run-handle.ts";
import type { RunPage, RunQuery } from "../run/run-summary.ts";
import type { SpawnBudget } from "../limits/spawn-budget.ts";

/** How an input is to be run. */
export interface SubmitOptions {
  /** Any text that is a session id (`parseSessionId`). Absent: a new session (S5). */
  readonly sessionId?: string;
  /** Orders given through the handle are in this name, unless told otherwise (`as`). */
  readonly userId?: string;
  readonly tenantId?: string;
  /** Where the input came from; picks the prompt's variant. */
  readonly channel?: string;
  readonly metadata?: JsonObject;
  /** Tightens the agent's own. */
  readonly budget?: Partial<ExecutionBudget>;
  readonly spawnBudget?: Partial<SpawnBudget>;
  readonly priority?: Priority;
  /** PERMANENT unless told. */
  readonly retention?: HistoryRetention;
  /** Send text as it is written (E2). */
  readonly streaming?: boolean;
  /**
   * S5: what becomes of the input while the agent is at work in the session: `agent_busy`, unless told; or steering for its next turn.
   * A run that is suspended there takes it as steering either way; one of another user or tenant never does.
   */
  readonly whenBusy?: "refuse" | "steer";
  /** `run_` and letters, digits, _ or -. Submitting again under the same id is submitting once. */
  readonly runId?: string;
}

/** Where agents are hosted and runs are started. Handed to `agents`, which knows no runtime of its own. */
export interface Runtime {
  /** What its deadlines go by. */
  readonly clock: Clock;
  /** With the agents it is made of. Runs of an agent are driven only where it is registered. */
  register(agent: HostedAgent): void;
  /**
   * Durable when the promise resolves. S5: the run that is unfinished in the session, if the input became steering for it; `agent_busy`
   * if it could not, naming that run and what it waits for.
   */
  submit(agent: HostedAgent, input: JsonValue, options?: SubmitOptions): Promise<RunHandle>;
  /** A run of this store, whoever drives it. */
  find(runId: string): Promise<RunHandle | undefined>;
  /** Runs of this store, the newest first, whoever drives them. */
  list(query?: RunQuery): Promise<RunPage>;
  /** Messages that are not tried any more, since run after run that had them failed; of all agents, unless told. */
  deadLetters(agentId?: string): Promise<readonly Delivery[]>;
  /** Dead letters of an agent are tried again, as if they came now: all of them, unless told. How many. */
  redeliver(agentId: string, messageIds?: readonly string[]): Promise<number>;
  /** Deletes runs that ended before this time (epoch milliseconds), with all they hold; their sessions stay. How many. */
  collect(options: { readonly endedBefore: number }): Promise<number>;
  /** With the sessions of the workers in it. Nothing where there is none; `agent_busy` while a run is under way in it. Its runs stay until they are collected. */
  deleteSession(sessionId: string): Promise<void>;
  /**
   * Lets what is being driven come to rest, then lets go of the store. Whoever waits for a run through this runtime then, or asks anything
   * of it or its handles later, gets `closed`.
   */
  close(): Promise<void>;
}
