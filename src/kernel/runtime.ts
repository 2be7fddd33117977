import type { Agent } from "./agent.ts";
import type { ExecutionBudget } from "./execution-budget.ts";
import type { RunId, SessionId } from "./identity.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import type { Priority } from "./priority.ts";
import type { RunHandle } from "./run-handle.ts";
import type { SpawnBudget } from "./spawn-budget.ts";

/** How an input is to be run. */
export interface SubmitOptions {
  /** Absent: a new session (S5). */
  readonly sessionId?: SessionId;
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
  /** Send text as it is written (E2). */
  readonly streaming?: boolean;
  /** Submitting again under the same id is submitting once. */
  readonly runId?: RunId;
}

/** Where agents are hosted and runs are started. Handed to `agents`, which knows no runtime of its own. */
export interface Runtime {
  /** With the agents it is made of. Runs of an agent are driven only where it is registered. */
  register(agent: Agent): void;
  /** Durable when the promise resolves. */
  submit(agent: Agent, input: JsonValue, options?: SubmitOptions): Promise<RunHandle>;
  /** A run of this store, whoever drives it. */
  find(runId: RunId): Promise<RunHandle | undefined>;
  /** Lets what is being driven come to rest, then lets go of the store. */
  close(): Promise<void>;
}
