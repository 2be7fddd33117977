import {
  type CrashLoop,
  runKinds,
  longestScoreName,
  runSummaryStatuses,
  waitCauses,
  type ApprovalDecision,
  type ApprovalKind,
  type ApprovalRequest,
  type Event,
  type ExecutionBudget,
  type Failure,
  type Message,
  type Priority,
  type RunResult,
  type RunFlow,
  type RunSnapshot,
} from "../../../kernel/index.ts";
import type { StoredCalls } from "../../view/recorded-calls.ts";
import type { StoredTrace } from "../../view/run-trace.ts";
import type { StoredSteps } from "../../view/step-log.ts";
import {
  anyJson,
  anyObject,
  choice,
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  optional,
  schemaOf,
  text,
  type Schema,
} from "./schema.ts";

export const runId = text({ pattern: "^run_[A-Za-z0-9_-]{1,64}$", description: "Id of a run." });
export const sessionId = text({ minLength: 1, maxLength: 256, description: "Id of a session." });
export const agentId = text({ minLength: 1, maxLength: 257, description: "Id of an agent." });
export const taskId = text({ pattern: "^t\\d{1,9}$", description: "Id of a task. Default: the root, t0." });
export const time = integer({ description: "Epoch milliseconds." });
export const usd = nullable(number({ description: "US dollars. null if a price is unknown." }));

/** Maximum number of items of a page. */
export const limit = optional(integer({ minimum: 1, maximum: 500, description: "Maximum number of items." }));
export const after = optional(
  text({ maxLength: 1_024, description: "The `next` value of the previous page." }),
);
export const next = nullable(text({ description: "Position of the next page. null for the last page." }));

export const runParams = object({ runId });

const weights: readonly Priority[] = [0, 1, 2, 4, 8];
export const priority = schemaOf<Priority>({
  type: "integer",
  enum: weights,
  description: "0 BACKGROUND, 1 LOW, 2 NORMAL, 4 HIGH, 8 CRITICAL.",
});

export const usage = named(
  "Usage",
  object({
    inputTokens: integer(),
    outputTokens: integer(),
    cacheReadTokens: integer(),
    cacheWriteTokens: integer(),
    reasoningTokens: integer(),
    costUsd: usd,
  }),
);
const unreported = object({ tokens: integer(), costUsd: usd, likelyUsd: optional(usd) });

export const failure: Schema<Failure> = named(
  "Failure",
  schemaOf<Failure>({
    type: "object",
    properties: {
      code: { type: "string" },
      message: { type: "string" },
      details: { type: "object" },
      cause: { $ref: "#/components/schemas/Failure" },
    },
    required: ["code", "message"],
    additionalProperties: false,
  }),
);

const runStatus = choice(runSummaryStatuses, { description: "Status of a run." });

const runFlow = schemaOf<RunFlow>({
  type: "object",
  description: "Limits of the run. Absent if it has none.",
  properties: {
    concurrency: { type: "object" },
    rate: { type: "object" },
    object: {
      type: "object",
      description: "The object and the key of which the run is a call.",
      properties: { name: { type: "string" }, key: { type: "string" }, isShared: { type: "boolean" } },
      required: ["name", "key"],
      additionalProperties: false,
    },
    collect: { type: "object" },
  },
  additionalProperties: false,
});

const scoreMembers = {
  name: text({ description: "What was judged." }),
  value: number({ description: "From 0 to 1." }),
  by: text({ description: "The person or the scorer that judged." }),
  at: time,
};

const runScore = named("RunScore", object(scoreMembers));

/** A score with its comment. */
export const storedScore = named(
  "StoredScore",
  object({
    ...scoreMembers,
    comment: nullable(text()),
    replacedAt: nullable(time),
  }),
);

const runMembers = {
  runId: text(),
  kind: choice(runKinds),
  agentId: text(),
  sessionId: optional(text({ description: "Absent for a workflow, which has no session." })),
  tenantId: nullable(text()),
  userId: nullable(text()),
  priority,
  agentVersion: nullable(text()),
  title: nullable(text()),
  metadata: anyObject(),
  createdAt: time,
  startAt: nullable(time),
  recoveries: integer({ description: "How often a worker was lost while it owned the run." }),
  host: optional(
    text({ description: "The machine to which the run is bound. Absent if any worker may execute it." }),
  ),
  status: runStatus,
  waitsFor: list(choice(waitCauses)),
  updatedAt: time,
  endedAt: nullable(time),
  usage,
  costUsd: usd,
  unreported,
  turns: integer(),
  flow: optional(runFlow),
  scores: optional(
    list(runScore, { description: "The scores that count, without comments. Absent if there are none." }),
  ),
};

export const runSummary = named("Run", object(runMembers));

/** A run with the input that it got. */
export const runWithInput = named(
  "RunWithInput",
  object({
    ...runMembers,
    inputId: text({ description: "Id of the input, with which `withdraw-input` takes it back." }),
  }),
);

export const runPage = named("RunPage", object({ runs: list(runSummary), next }));

/** The filters for runs, used in lists, counts and orders. */
export const runFilter = {
  sessionId: optional(sessionId),
  agentId: optional(agentId),
  agent: optional(
    text({
      minLength: 1,
      maxLength: 256,
      description:
        "Name of the root agent, whatever its key, or its whole id, such as `reeve:gateway/bot` for one program of the gateway.",
    }),
  ),
  tenantId: optional(text({ minLength: 1, description: "Only for tokens without a tenant." })),
  userId: optional(text({ minLength: 1 })),
  kind: optional(choice(runKinds)),
  status: optional(list(runStatus, { description: "May be repeated." })),
  createdAfter: optional(time),
  createdBefore: optional(time),
  endedAfter: optional(time),
  endedBefore: optional(time),
  costAbove: optional(
    number({
      description:
        "US dollars. The cost of a run that works is that of the last time it waited. Unknown costs never match.",
    }),
  ),
  costBelow: optional(number({ description: "US dollars, in the same way." })),
  metadata: optional(
    list(text({ pattern: "^[^=]+=", maxLength: 1_025 }), {
      description: "KEY=VALUE: a top-level string of the run's metadata. May be repeated.",
    }),
  ),
  score: optional(
    text({
      minLength: 1,
      maxLength: longestScoreName,
      description: "Name of a score that the run has, by any author.",
    }),
  ),
  scoreAbove: optional(number({ description: "The score named by `score` is greater than this." })),
  scoreBelow: optional(number({ description: "The score named by `score` is less than this." })),
};

export const event = named(
  "Event",
  schemaOf<Event>({
    type: "object",
    description:
      "One entry of the log of a run. `data` depends on `type`; see the list of events in the documentation.",
    properties: {
      seq: { type: "integer" },
      runId: { type: "string" },
      taskId: { type: "string" },
      agentId: { type: "string" },
      parentId: { type: ["string", "null"] },
      type: { type: "string" },
      at: { type: "integer" },
      data: { type: "object" },
      erased: { type: "boolean" },
    },
    required: ["seq", "runId", "taskId", "agentId", "parentId", "type", "at", "data"],
    additionalProperties: false,
  }),
);

const kinds = Object.keys({
  tool_call: true,
  question: true,
  elicitation: true,
  client_tool: true,
  confirm: true,
  select: true,
  input: true,
  top_up: true,
  foreign_tool_call: true,
  merge: true,
} satisfies Record<ApprovalKind, true>) as readonly ApprovalKind[];
const pending = {
  approvalId: text(),
  kind: choice(kinds),
  toolName: text(),
  callId: text(),
  input: anyJson(),
  parsedInput: optional(anyJson()),
  inputDigest: text(),
  toolDigest: optional(text()),
  inputSchema: optional(anyObject()),
  reason: text(),
  foreign: optional(
    schemaOf<NonNullable<ApprovalRequest["foreign"]>>({
      type: "object",
      description: "What a program tells about a call of its own. Nothing of it is checked.",
      properties: { program: { type: "string" } },
      required: ["program"],
    }),
  ),
  taskId: text(),
  agentId: text(),
  requestedAt: time,
};

export const approval = named(
  "Approval",
  object({
    ...pending,
    runId: text(),
    sessionId: text(),
    rootAgentId: text(),
    tenantId: nullable(text()),
    userId: nullable(text()),
  }),
);

/** A message that could not be delivered. */
export const deadLetter = named(
  "DeadLetter",
  object({
    message: schemaOf<Message>({
      type: "object",
      properties: {
        id: { type: "string" },
        from: { type: ["string", "null"] },
        to: { type: "string" },
        body: {},
        sentAt: { type: "integer" },
      },
      required: ["id", "from", "to", "body", "sentAt"],
    }),
    deliveries: integer(),
    notBefore: optional(integer()),
    runId: optional(text()),
    redelivered: optional(integer()),
  }),
);
export const approvalPage = named("ApprovalPage", object({ approvals: list(approval), next }));

export const runResult = named(
  "RunResult",
  object({
    output: anyJson(),
    status: text(),
    finishReason: nullable(text()),
    messages: list(schemaOf<RunResult["messages"][number]>({ type: "object" })),
    steps: list(schemaOf<RunResult["steps"][number]>({ type: "object" })),
    toolCalls: list(schemaOf<RunResult["toolCalls"][number]>({ type: "object" })),
    reasoning: text(),
    files: list(schemaOf<RunResult["files"][number]>({ type: "object" })),
    pendingApprovals: list(schemaOf<RunResult["pendingApprovals"][number]>({ type: "object" })),
    interruptionReason: nullable(text()),
    usage,
    costUsd: usd,
    unreported,
    turns: integer(),
    runId: text(),
    sessionId: optional(text({ description: "Absent for a workflow, which has no session." })),
    agentId: text(),
    error: nullable(failure),
    metadata: anyObject(),
  }),
);

export const runSnapshot = named(
  "RunSnapshot",
  object({
    status: runStatus,
    waitsFor: list(choice(waitCauses)),
    headcount: schemaOf<RunSnapshot["headcount"]>({ type: "object", description: "Seats of the run." }),
    ledger: schemaOf<RunSnapshot["ledger"]>({
      type: "object",
      description: "Money of the run: accounts, open reservations and cost per agent and model.",
    }),
  }),
);

const lost = { calls: integer(), tokens: integer(), costUsd: usd };
const spend = named("Spend", object({ ...lost, lost: object(lost) }));

const cancelled = nullable(
  object({
    reason: text(),
    by: nullable(text({ description: "Who cancelled the run. Null if a task above cancelled the task." })),
  }),
);

const task = named(
  "Task",
  object({
    taskId: text(),
    agentId: text(),
    parentId: nullable(text()),
    depth: integer(),
    children: integer(),
    priority,
    status: text({ description: "pending, running, waiting, pausing, paused, or the status of the end." }),
    budget: nullable(schemaOf<ExecutionBudget>({ type: "object" })),
    own: spend,
    total: spend,
    hasSeat: flag(),
    yieldsTo: nullable(text()),
    waitsFor: list(text()),
    questions: integer(),
    openCalls: integer(),
    lastCall: nullable(object({ kind: choice(["model", "tool"]), name: text(), isFailed: optional(flag()) })),
    model: nullable(text({ description: "The model that the task called last." })),
    result: nullable(text({ description: "The beginning of the output of a completed task." })),
    cancelled,
    stoppedAt: nullable(
      text({
        description: "The limit that stopped the task: costUsd, turns, tokens, seats, deadlineMs or cap.",
      }),
    ),
    recorded: integer(),
    recordedUsd: number(),
    createdAt: time,
    endedAt: nullable(time),
  }),
);

export const runView = named(
  "RunView",
  object({
    runId: text(),
    agentId: text(),
    sessionId: optional(text({ description: "Absent for a workflow, which has no session." })),
    input: anyJson(),
    status: text(),
    output: anyJson(),
    failure: nullable(failure),
    cancelled,
    startedAt: time,
    endedAt: nullable(time),
    seq: integer({ description: "The last event that counts." }),
    at: time,
    seats: integer(),
    maxSeats: nullable(integer()),
    live: integer(),
    active: integer(),
    recorded: integer(),
    recordedUsd: number(),
    questions: integer(),
    results: integer({ description: "Model calls, tool calls and steps that have a result." }),
    messages: integer({ description: "Messages that agents and people sent to each other." }),
    recoveries: list(
      object({
        seq: integer(),
        at: time,
        lastAt: time,
        epoch: integer(),
        owner: nullable(
          text({ description: "The worker that took over. Null if the log does not name it." }),
        ),
        lostOwner: nullable(
          text({ description: "The worker that died. Null if none did, or it is unknown." }),
        ),
        isCrash: flag(),
        replayed: integer(),
        savedUsd: number({ description: "Cost of the recorded calls, which was not paid again." }),
        lost: integer({ description: "Model calls that were in flight and are made again." }),
      }),
    ),
    waits: list(object({ seq: integer(), at: time, lastAt: time }), {
      description:
        "The first 50 times of at least a minute in which no agent worked: the event that ended each, its time and that of the event before.",
    }),
    isUndone: flag({
      description: "Whether the run has begun to undo its work, so that it cannot be resumed.",
    }),
    crashLoop: nullable(
      schemaOf<CrashLoop>({
        type: "object",
        description:
          "Why the run is paused as a crash loop: the owners that ended, those of which that is unknown, and the calls in flight.",
      }),
    ),
    forkedFrom: nullable(
      object({
        runId: text(),
        at: integer(),
        inherited: usage,
        lastAt: time,
        startedAt: time,
        earlier: list(object({ seq: integer(), startedAt: time, lastAt: time }), {
          description: "The starts of the forks that the shared events contain.",
        }),
      }),
    ),
    tasks: list(task, { description: "In the order of their creation; `parentId` makes them a tree." }),
    money: list(object({ agentId: text(), model: text(), calls: integer(), usage })),
    asked: list(
      object({
        request: schemaOf<ApprovalRequest>({ type: "object" }),
        taskId: text(),
        agentId: text(),
        askedAt: time,
        decision: nullable(schemaOf<ApprovalDecision>({ type: "object" })),
        decidedAt: nullable(time),
      }),
      {
        description:
          "The questions to people, in the order of asking. One without a decision waits until its task ends.",
      },
    ),
  }),
);

const step = named(
  "Step",
  object({
    taskId: text(),
    kind: choice(["model", "tool", "step", "person", "paused", "seat"]),
    name: text(),
    about: text(),
    edited: nullable(
      object({
        seq: integer({ description: "The decision with which a person changed the arguments of the call." }),
        asked: text({ description: "What the call was about before." }),
      }),
    ),
    id: text(),
    startSeq: integer(),
    callSeq: integer({
      description: "The event message_start of a model call, also of one that is made again.",
    }),
    startAt: time,
    endSeq: nullable(integer()),
    endAt: nullable(time),
    outcome: nullable(choice(["ok", "error", "denied", "lost", "cut", "refused"])),
    isAgain: flag({ description: "Whether the call repeats one that was lost or that failed." }),
    tokens: integer(),
    costUsd: usd,
  }),
);

export const steps = object({ steps: list(step, { description: "In the order in which they started." }) });

export const runPast = named(
  "RunPast",
  object({
    trace: schemaOf<StoredTrace>({ type: "object", description: "Events, money and seats over time." }),
    steps: object({
      seq: integer({ description: "The last event that counts." }),
      at: time,
      first: integer({ description: "`steps` contains every step that ended at or after this event." }),
      steps: list(step),
      takers: list(list(text()), {
        description: "Tasks that give their seats, and the tasks that take them.",
      }),
      endedTasks: list(schemaOf<StoredSteps["endedTasks"][number]>({ type: "array" })),
      parents: list(list(nullable(text())), { description: "Tasks, each with the one that spawned it." }),
      asked: list(list(text()), {
        description: "Open questions about tool calls, each with the id of its call.",
      }),
      calls: schemaOf<StoredCalls>({
        type: "object",
        description: "Recorded calls, and what recoveries read.",
      }),
      failed: list(schemaOf<StoredSteps["failed"][number]>({ type: "array" }), {
        description: "Model calls that failed and may be made again: task, and the first event of the call.",
      }),
      recovery: object({ seq: integer(), lastAt: time, lost: integer(), isCrash: flag() }),
    }),
  }),
);

export const budget = object({
  maxTokens: optional(nullable(integer({ minimum: 0 }))),
  maxCostUsd: optional(nullable(number({ minimum: 0 }))),
  maxTurns: optional(nullable(integer({ minimum: 0 }))),
  deadlineMs: optional(nullable(number({ minimum: 0 }))),
});

export const spawnBudget = object({
  maxAgents: optional(integer({ minimum: 1 })),
  allowPreempt: optional(flag()),
});

const longestInstructions = 256 * 1_024;
const modelName = text({
  minLength: 3,
  maxLength: 200,
  description: "The main model of the agent from there on, as provider/id.",
});
const changedInstructions = text({
  minLength: 1,
  maxLength: longestInstructions,
  description: "Text in place of the instructions of the agent.",
});
const keptTools = list(text({ minLength: 1, maxLength: 256 }), {
  maxItems: 1_000,
  description: "Names of those tools of the agent that the model sees and may call.",
});

/** The changes to a run or a fork, as properties of a request body. */
export const changeMembers = {
  instructions: optional(changedInstructions),
  model: optional(modelName),
  tools: optional(keptTools),
};

export const runChanges = object(changeMembers, {
  description:
    "What the run changes of its agent. A token with the scope run may change only what the option `allowedChanges` of the agent names, and otherwise gets 403.",
});
