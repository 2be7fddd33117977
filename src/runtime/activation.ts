import {
  assertJson,
  executionBudget,
  formatRunId,
  formatTaskId,
  parseRunId,
  HistoryRetention,
  Supervision,
  tightenBudget,
  unlimitedBudget,
  userEntry,
  type Agent,
  type Commit,
  type Event,
  type ExecutionBudget,
  type JsonObject,
  type JsonValue,
  type Message,
  type RunRecord,
  type SpawnBudget,
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
  const { metadata = nothing, messages = none, userId = null, channel, runId: wanted } = options;
  assertJson(input, `the input of ${agentId}`);
  if (metadata !== nothing) assertJson(metadata, `the metadata of a run of ${agentId}`);
  const root = Supervision.root(agentId, {
    ids: wanted === undefined ? ids : { next: () => parseRunId(wanted).slice("run_".length) },
    executionBudget: budgetOf(agent, options),
    sessionId: options.sessionId,
    spawnBudget: seatsOf(agent, options),
    priority: options.priority,
    retention: options.retention,
  });
  const { runId, sessionId, priority, executionBudget: budget } = root;
  const supervision = root.toJSON();
  const at = clock.now();
  const by = userId ?? messages[0]?.from;
  const task: TaskRecord = {
    taskId,
    agentId,
    parentId: null,
    supervision,
    budget,
    input,
    messages,
    userId,
    metadata,
    streaming: options.streaming ?? false,
    onParentEnd: "wait",
    onPause: "suspend",
    tools: null,
  };
  const told = { agentId, sessionId, input, supervision, metadata };
  const data = by == null ? told : { ...told, by };
  const start: Event = { seq: 0, runId, taskId, agentId, parentId: null, type: "run_start", at, data };
  const first: Commit = {
    number: 0,
    at,
    events: [start],
    tasks: [{ type: "create", task: channel === undefined ? task : { ...task, channel } }],
    ledger: [purseOf(owner, { taskId, parentId: null, budget, priority })],
  };
  const message = root.retention === HistoryRetention.NONE ? undefined : agent.messageOf?.(input);
  const said = message && [userEntry({ sessionId, agentId, runId, at, message }, "pending")];
  return {
    record: {
      runId,
      agentId,
      sessionId,
      tenantId: options.tenantId ?? null,
      userId,
      priority,
      agentVersion: agent.version ?? null,
      createdAt: at,
    },
    first: said === undefined ? first : { ...first, sessions: said },
  };
}

const taskId = formatTaskId(0);
const nothing: JsonObject = Object.freeze({});
const none: readonly Message[] = Object.freeze([]);

/** Looked at by whoever it goes to (B2). */
function budgetOf({ budget }: Agent, { budget: given }: SubmitOptions): Partial<ExecutionBudget> {
  const own = budget ?? unlimitedBudget;
  return given === undefined ? own : tightenBudget(executionBudget(own), given);
}

function seatsOf(
  { spawnBudget: own }: Agent,
  { spawnBudget: given }: SubmitOptions,
): Partial<SpawnBudget> | undefined {
  return own === undefined || given === undefined ? (given ?? own) : { ...own, ...given };
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
