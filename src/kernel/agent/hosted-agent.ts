import type { CallPath } from "./call-path.ts";
import type { UserMessage } from "../messages/chat-message.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { AgentId } from "../base/identity.ts";
import type { InboxMode, TaskInbox } from "../stores/inbox.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Model } from "../messages/model.ts";
import type { RunContext } from "./run-context.ts";
import type { SpawnBudget } from "../limits/spawn-budget.ts";
import type { Tool } from "./tool.ts";

/**
 * What a worker hosts. `run` is called for an input, or when a message has arrived, and again from the top after a crash: everything it does to the
 * world goes through `ctx`, and what it decides depends on nothing else. Each activation is a task of its own.
 */
export interface HostedAgent {
  readonly id: AgentId;
  /** J9: change it when the order or meaning of steps changes. */
  readonly version?: string;
  /** What `ctx.llm` calls, by role; `main` when none is named, and for a role that has none of its own. */
  readonly models?: Readonly<Record<string, Model>>;
  /** What `ctx.tool` may call. */
  readonly tools?: readonly Tool[];
  /** Agents it may spawn; registered with it. */
  readonly subAgents?: readonly HostedAgent[];
  readonly budget?: Partial<ExecutionBudget>;
  /** Of runs it is the root of, unless their submission says otherwise. */
  readonly spawnBudget?: Partial<SpawnBudget>;
  /**
   * `each`, unless told: every message starts a run of its own, in the name of whoever sent it, side by side with those of other
   * senders. `together`: one run at a time has all that wait.
   */
  readonly inbox?: InboxMode;
  /** Read anew at each call, so that a change of configuration takes effect at the next one (F1). */
  readonly callPath?: CallPath;
  /**
   * What an input is in a conversation. S2: it is committed to the session with the submission, pending until the invocation is closed.
   * Absent, or `undefined` for an input: nothing is kept of it there.
   */
  messageOf?(input: JsonValue): UserMessage | undefined;
  run(ctx: RunContext, inbox: TaskInbox): Promise<JsonValue | void>;
}

/** Whom an agent asks in a role. */
export function modelFor({ models }: Pick<HostedAgent, "models">, role: string): Model | undefined {
  return models?.[role] ?? models?.["main"];
}
