import {
  assertJson,
  canonicalJson,
  executionBudget,
  formatRunId,
  formatTaskId,
  HistoryRetention,
  Supervision,
  tightenBudget,
  unlimitedBudget,
  userEntry,
  type Agent,
  type Commit,
  type Delivery,
  type Event,
  type ExecutionBudget,
  type JsonObject,
  type JsonValue,
  type Message,
  type RunRecord,
  type SpawnBudget,
  type SubmitOptions,
  type TaskRecord,
} from "../../kernel/index.ts";
import { purseOf } from "../journal/task-record.ts";
import type { OwnerContext } from "../process/worker-context.ts";

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
  const { metadata = nothing, messages = none, userId = null, channel } = options;
  assertJson(input, `the input of ${agentId}`);
  if (metadata !== nothing) assertJson(metadata, `the metadata of a run of ${agentId}`);
  const root = Supervision.root(agentId, {
    ids,
    runId: options.runId,
    executionBudget: budgetOf(agent, options),
    sessionId: options.sessionId,
    spawnBudget: seatsOf(agent, options),
    priority: options.priority,
    retention: options.retention,
  });
  const { runId, sessionId, priority, executionBudget: budget } = root;
  const supervision = root.toJSON();
  const at = clock.now();
  const by = messages[0]?.from ?? userId;
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
 * Starts runs for the messages that wait for an agent: each its own, or one for all where none is at it. When there may be more to start
 * without anyone's doing; `null`: never. A run's id follows from the message at its head and how often that was handed back, so that
 * whoever tries, from whatever process, starts the same run.
 */
export async function activate(owner: OwnerContext, agent: Agent): Promise<number | null> {
  const { mail = "each" } = agent;
  for (;;) {
    const { deliveries, at } = await owner.store.inbox.next(agent.id, { mail, now: owner.clock.now() });
    const shares = mail === "each" ? deliveries.map((each) => [each]) : [deliveries];
    let isBegun = false;
    for (const share of shares) if (await begin(owner, agent, share)) isBegun = true;
    if (!isBegun) return at;
  }
}

async function begin(owner: OwnerContext, agent: Agent, deliveries: readonly Delivery[]): Promise<boolean> {
  const { store, hash } = owner;
  const [head] = deliveries;
  if (head === undefined) return false;
  const { message, deliveries: tried, redelivered } = head;
  const again = redelivered === undefined ? "" : ` ${redelivered}`;
  const digest = hash(`${agent.id} ${message.id} ${tried}${again}`).replaceAll(/[^A-Za-z0-9]/g, "-");
  const runId = formatRunId(digest.slice(0, 40));
  const messages = deliveries.map((each) => each.message);
  const { record, first } = newRun(owner, agent, null, { runId, messages, ...nameOf(messages) });
  const take = { type: "take", agentId: agent.id, messageIds: messages.map(({ id }) => id) } as const;
  const { kind } = await store.journal.create(record, { ...first, inbox: [take] });
  return kind === "created";
}

/** In whose name a run for these messages is: what is the same for all of them. */
function nameOf(messages: readonly Message[]): Pick<SubmitOptions, "userId" | "tenantId" | "metadata"> {
  const [first, ...others] = messages.map(({ sender }) => sender);
  if (first === undefined) return {};
  const isShared = (key: "userId" | "tenantId" | "metadata"): boolean =>
    others.every((other) => canonicalJson(other?.[key] ?? null) === canonicalJson(first[key]));
  const { userId, tenantId, metadata } = first;
  return {
    ...(userId !== null && isShared("userId") && { userId }),
    ...(tenantId !== null && isShared("tenantId") && { tenantId }),
    ...(isShared("metadata") && { metadata }),
  };
}
