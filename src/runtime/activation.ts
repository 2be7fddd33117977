import {
  assertJson,
  formatRunId,
  formatTaskId,
  HistoryRetention,
  Supervision,
  tightenBudget,
  unlimitedBudget,
  userEntry,
  type Agent,
  type Commit,
  type Event,
  type JsonValue,
  type Message,
  type RunRecord,
  type SubmitOptions,
  type TaskRecord,
} from "../kernel/index.ts";
import { purseOf } from "./child-task.ts";
import type { OwnerContext } from "./owner-context.ts";

export interface NewRun {
  readonly record: RunRecord;
  readonly first: Commit;
}

/** A run of `agent` with everything its first commit holds: the root task, its seat, its purse and what the user said (S2). */
export function newRun(
  owner: Pick<OwnerContext, "clock" | "ids" | "warnAt">,
  agent: Agent,
  input: JsonValue,
  options: SubmitOptions & { readonly messages?: readonly Message[] },
): NewRun {
  const { clock, ids } = owner;
  const { id: agentId } = agent;
  assertJson(input, `the input of ${agentId}`);
  assertJson(options.metadata ?? {}, `the metadata of a run of ${agentId}`);
  const minted = {
    next: () => (options.runId === undefined ? ids.next() : options.runId.slice("run_".length)),
  };
  const budget = tightenBudget(tightenBudget(unlimitedBudget, agent.budget ?? {}), options.budget ?? {});
  const supervision = Supervision.root(agentId, {
    ids: minted,
    executionBudget: budget,
    ...(options.sessionId === undefined ? {} : { sessionId: options.sessionId }),
    spawnBudget: { ...agent.spawnBudget, ...options.spawnBudget },
    ...(options.priority === undefined ? {} : { priority: options.priority }),
    ...(options.retention === undefined ? {} : { retention: options.retention }),
  });
  const { runId, sessionId, priority } = supervision;
  const at = clock.now();
  const taskId = formatTaskId(0);
  const metadata = options.metadata ?? {};
  const by = options.userId ?? options.messages?.[0]?.from ?? undefined;
  const task: TaskRecord = {
    taskId,
    agentId,
    parentId: null,
    supervision: supervision.toJSON(),
    budget,
    input,
    messages: options.messages ?? [],
    userId: options.userId ?? null,
    metadata,
    streaming: options.streaming ?? false,
    ...(options.channel !== undefined && { channel: options.channel }),
    onParentEnd: "wait",
    onPause: "suspend",
    tools: null,
  };
  const data = {
    agentId,
    sessionId,
    input,
    supervision: supervision.toJSON(),
    metadata,
    ...(by === undefined ? {} : { by }),
  };
  const start: Event = { seq: 0, runId, taskId, agentId, parentId: null, at, type: "run_start", data };
  const message = supervision.retention === HistoryRetention.NONE ? undefined : agent.messageOf?.(input);
  return {
    record: {
      runId,
      agentId,
      sessionId,
      tenantId: options.tenantId ?? null,
      userId: options.userId ?? null,
      priority,
      agentVersion: agent.version ?? null,
      createdAt: at,
    },
    first: {
      number: 0,
      at,
      events: [start],
      tasks: [{ type: "create", task }],
      ledger: [purseOf(owner, { taskId, parentId: null, budget, priority })],
      ...(message && {
        sessions: [userEntry({ sessionId, agentId, runId, at, message }, "pending")],
      }),
    },
  };
}

/**
 * Starts a run for the messages that wait for an agent, unless one is at it. The run's id follows from the message at the head and how
 * often it was handed back, so that whoever tries, from whatever process, starts the same run.
 */
export async function activate(owner: OwnerContext, agent: Agent): Promise<boolean> {
  const { store, hash } = owner;
  const deliveries = await store.inbox.peek(agent.id);
  const [head] = deliveries;
  if (head === undefined) return false;
  const digest = hash(`${agent.id} ${head.message.id} ${head.deliveries}`).replaceAll(/[^A-Za-z0-9]/g, "-");
  const runId = formatRunId(digest.slice(0, 40));
  const messages = deliveries.map(({ message }) => message);
  const { record, first } = newRun(owner, agent, null, { runId, messages });
  const { kind } = await store.journal.create(record, first);
  return kind === "created";
}
