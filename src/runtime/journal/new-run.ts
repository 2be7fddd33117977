import { openAccountCommand } from "./task-record.ts";
import type { WorkerContext } from "../process/worker-context.ts";
import {
  type HostedAgent,
  type Commit,
  type Event,
  type ExecutionBudget,
  HistoryRetention,
  type JsonObject,
  type JsonValue,
  type Message,
  type RunRecord,
  type SpawnBudget,
  type SubmitOptions,
  Supervision,
  type TaskRecord,
  assertJson,
  executionBudget,
  formatTaskId,
  tightenBudget,
  unlimitedBudget,
  userEntry,
} from "../../kernel/index.ts";

/** A run of `agent` with everything its first commit holds: the root task, its seat, its purse and what the user said (S2). */
export function newRun(
  worker: Pick<WorkerContext, "clock" | "ids" | "warnAt">,
  agent: HostedAgent,
  input: JsonValue,
  options: SubmitOptions & { readonly messages?: readonly Message[] },
): NewRun {
  const { clock, ids } = worker;
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
    ledger: [openAccountCommand(worker, { taskId, parentId: null, budget, priority })],
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

export interface NewRun {
  readonly record: RunRecord;
  readonly first: Commit;
}

const taskId = formatTaskId(0);

const nothing: JsonObject = Object.freeze({});

const none: readonly Message[] = Object.freeze([]);

/** Looked at by whoever it goes to (B2). */
function budgetOf({ budget }: HostedAgent, { budget: given }: SubmitOptions): Partial<ExecutionBudget> {
  const own = budget ?? unlimitedBudget;
  return given === undefined ? own : tightenBudget(executionBudget(own), given);
}

function seatsOf(
  { spawnBudget: own }: HostedAgent,
  { spawnBudget: given }: SubmitOptions,
): Partial<SpawnBudget> | undefined {
  return own === undefined || given === undefined ? (given ?? own) : { ...own, ...given };
}
