/** Type tests, checked by the compiler and never run. Each `@ts-expect-error` precedes a line that must not compile. */
import { z } from "zod";
import {
  type AgentId,
  assertJson,
  BudgetExhaustedError,
  CancellationError,
  type DeepReadonly,
  type Event,
  eventDraft,
  type EventData,
  type EventDraft,
  type EventType,
  executionBudget,
  Fault,
  type FaultCode,
  formatAgentId,
  formatTaskId,
  type HookCallback,
  HookEvent,
  type HookPayload,
  type Hooks,
  type Infer,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  parseRunId,
  parseSessionId,
  Priority,
  type RunContext,
  type RunId,
  type RunMeta,
  type RunStatus,
  type Schema,
  type SessionId,
  type StepAddress,
  stepAt,
  type StopReason,
  type Supervision,
  type TaskId,
  type TaskStatus,
  type TopicId,
  type Turn,
  type Usage,
} from "../../src/kernel/index.ts";

type Expect<Verdict extends true> = Verdict;
type Assignable<From, To> = [From] extends [To] ? true : false;
type IsAny<Type> = 0 extends 1 & Type ? true : false;
/** `true` if each type is assignable to the other and neither is `any`, which is assignable to every type. */
type Equal<One, Other> = IsAny<One> | IsAny<Other> | Differ<One, Other> extends false ? true : false;
type Differ<One, Other> = [Assignable<One, Other>, Assignable<Other, One>] extends [true, true]
  ? false
  : true;

// The type of a tool's input follows from its schema.

const search = z.object({
  query: z.string(),
  limit: z.number().optional(),
  tags: z.array(z.enum(["news", "law"])),
  within: z.object({ days: z.number() }).nullable(),
});
const trimmed = z.string().transform((text) => text.length);
const ticket = {
  type: "object",
  properties: {
    title: { type: "string" },
    urgent: { type: "boolean" },
    votes: { type: "integer" },
    weight: { type: "number" },
    state: { enum: ["open", "closed", 3, null] },
    kind: { const: "ticket" },
    labels: { type: "array", items: { type: "string" } },
    grid: { type: "array", items: { type: "array", items: { type: "number" } } },
    anyList: { type: "array" },
    nothing: { type: "null" },
    owner: {
      type: "object",
      properties: { name: { type: "string" }, age: { type: "integer" } },
      required: ["name"],
    },
    extra: { type: "object" },
    free: { description: "whatever comes" },
    either: { anyOf: [{ type: "string" }, { type: "number" }] },
  },
  required: ["title", "state", "kind", "owner"],
} as const;

interface Ticket {
  title: string;
  state: "open" | "closed" | 3 | null;
  kind: "ticket";
  owner: { name: string; age?: number };
  urgent?: boolean;
  votes?: number;
  weight?: number;
  labels?: string[];
  grid?: number[][];
  anyList?: JsonValue[];
  nothing?: null;
  extra?: JsonObject;
  free?: JsonValue;
  either?: JsonValue;
}

export type InferredInputs = [
  Expect<Equal<Infer<typeof search>, z.output<typeof search>>>,
  Expect<Equal<Infer<typeof search>["query"], string>>,
  Expect<Equal<Infer<typeof search>["tags"], ("news" | "law")[]>>,
  Expect<Equal<Infer<typeof search>["within"], { days: number } | null>>,
  // The type is the output of the schema, not its input.
  Expect<Equal<Infer<typeof trimmed>, number>>,
  Expect<Equal<Infer<typeof ticket>["owner"], Ticket["owner"]>>,
  Expect<Equal<Infer<typeof ticket>["state"], Ticket["state"]>>,
  Expect<Equal<Infer<typeof ticket>["kind"], "ticket">>,
  Expect<Equal<Infer<typeof ticket>["labels"], Ticket["labels"]>>,
  Expect<Equal<Infer<typeof ticket>, Ticket>>,
  Expect<Equal<Infer<{ readonly type: "string" }>, string>>,
  Expect<
    Equal<
      Infer<{ readonly type: "object"; readonly properties: { readonly a: { readonly type: "null" } } }>,
      { a?: null }
    >
  >,
  // A schema that is known only at run time gives `JsonValue`.
  Expect<Equal<Infer<JsonSchema>, JsonValue>>,
  Expect<Assignable<typeof search, Schema>>,
  Expect<Assignable<typeof ticket, Schema>>,
];

export function toolInputs(found: Infer<typeof search>, made: Infer<typeof ticket>): void {
  const query: string = found.query;
  const owner: string = made.owner.name;
  // @ts-expect-error -- limit is optional in the zod schema
  const limit: number = found.limit;
  // @ts-expect-error -- the schema has no key page
  const missing: unknown = found.page;
  // @ts-expect-error -- age is not required in the JSON Schema
  const age: number = made.owner.age;
  // @ts-expect-error -- "done" is not in the enum
  const closed: boolean = made.state === "done";
  // @ts-expect-error -- title is required
  const incomplete: Infer<typeof ticket> = { state: "open", kind: "ticket", owner: { name: "a" } };
  void [query, owner, limit, missing, age, closed, incomplete];
}

// Types of events.

export type Events = [
  Expect<Equal<Event["type"], EventType>>,
  Expect<Equal<Event<"turn_start">["data"], { readonly turn: number }>>,
  Expect<
    Equal<EventDraft<"run_cancel">, { readonly type: "run_cancel"; readonly data: EventData["run_cancel"] }>
  >,
  Expect<Equal<Event["runId"], RunId>>,
];

export function eventDrafts(): void {
  const draft: EventDraft<"turn_start"> = eventDraft("turn_start", { turn: 1 });
  const among: EventDraft = draft;
  // @ts-expect-error -- a turn is a number
  eventDraft("turn_start", { turn: "x" });
  // @ts-expect-error -- turn_begin is not an event
  eventDraft("turn_begin", { turn: 1 });
  // @ts-expect-error -- the data of the event are missing
  eventDraft("turn_start");
  // @ts-expect-error -- the key turn is missing
  eventDraft("turn_start", {});
  // @ts-expect-error -- turn_start has no key step
  eventDraft("turn_start", { turn: 1, step: 1 });
  // @ts-expect-error -- the data belong to another event
  const mixed: EventDraft = { type: "turn_start", data: { reason: "user stopped", by: "user" } };
  void [among, mixed];
}

export function narrowedEvent(event: Event): number | string | undefined {
  switch (event.type) {
    case "turn_start":
      return event.data.turn;
    case "run_cancel":
      return event.data.reason;
    case "turn_end": {
      const reason: StopReason = event.data.stopReason;
      // @ts-expect-error -- reason is a key of run_cancel
      return event.data.reason ?? reason;
    }
    // @ts-expect-error -- turn_begin is not an event
    case "turn_begin":
      return undefined;
    default:
      // @ts-expect-error -- the type of the event is not narrowed here
      return event.data.turn;
  }
}

export function eventsAreReadOnly(event: Event<"turn_start">): void {
  // @ts-expect-error -- an event is read-only
  event.seq = 1;
  // @ts-expect-error -- the data of an event are read-only
  event.data.turn = 2;
}

// Types of hooks.

export type HookPayloads = [
  Expect<Equal<HookPayload<"llm_end">["stopReason"], StopReason | null>>,
  Expect<Equal<HookPayload<typeof HookEvent.STEP_START>["step"], number>>,
  Expect<Equal<HookPayload<"run_end">["status"], RunStatus>>,
  Expect<Assignable<Usage, HookPayload<"run_end">["usage"]>>,
  Expect<Assignable<HookPayload<"run_end">["usage"], Usage>>,
  // Payloads keep the types of ids and JSON.
  Expect<Equal<HookPayload<"run_start">["agentId"], AgentId>>,
  Expect<Equal<HookPayload<"run_start">["runId"], RunId>>,
  Expect<Equal<HookPayload<"handoff">["childTaskId"], TaskId | null>>,
  Expect<Equal<HookPayload<"run_start">["input"], JsonValue>>,
  Expect<Equal<DeepReadonly<{ id: SessionId }>, { readonly id: SessionId }>>,
  Expect<Equal<DeepReadonly<{ list: { a: number }[] }>["list"][number], { readonly a: number }>>,
];

export function hooks(registered: Hooks, watchId: (id: AgentId) => void): void {
  registered.on(HookEvent.LLM_END, ({ usage, durationMs }) => void (usage.inputTokens + durationMs));
  registered.on("tool_end", async ({ status }) => void (status === "denied"));
  registered.on("run_start", ({ agentId }) => watchId(agentId));
  const stepEnd: HookCallback<"step_end"> = ({ step }) => void step;
  registered.on("step_end", stepEnd);
  // @ts-expect-error -- llm_finish is not a hook
  registered.on("llm_finish", () => {});
  // @ts-expect-error -- durationMs belongs to the payload of another hook
  registered.on(HookEvent.LLM_START, ({ durationMs }) => void durationMs);
  // @ts-expect-error -- the function is a handler of another hook
  registered.on("llm_start", stepEnd);
  // @ts-expect-error -- "failed" is not a status of tool_end
  registered.on("tool_end", ({ status }) => void (status === "failed"));
  registered.on("run_end", (payload) => {
    // @ts-expect-error -- the payload of a hook is read-only
    payload.status = "completed";
    // @ts-expect-error -- the payload of a hook is read-only at every depth
    payload.usage.inputTokens = 0;
  });
  // @ts-expect-error -- LLM_FINISH is not a constant of HookEvent
  void HookEvent.LLM_FINISH;
}

export function deeplyReadOnly(value: DeepReadonly<{ list: { a: number }[]; id: SessionId }>): SessionId {
  // @ts-expect-error -- the list is read-only
  value.list.push({ a: 1 });
  for (const member of value.list) {
    // @ts-expect-error -- the members of the list are read-only
    member.a = 2;
  }
  return value.id;
}

// Closed lists of values.

export type ClosedLists = [
  Expect<
    Equal<
      RunStatus,
      | "completed"
      | "max_turns"
      | "budget_exhausted"
      | "deadline_exceeded"
      | "guardrail_tripped"
      | "cancelled"
      | "paused"
      | "failed"
      | "max_output"
    >
  >,
  Expect<
    Equal<
      TaskStatus,
      "pending" | "running" | "suspended" | "pausing" | "paused" | "completed" | "failed" | "cancelled"
    >
  >,
  Expect<Equal<Priority, 0 | 1 | 2 | 4 | 8>>,
];

export function everyStatus(status: RunStatus): number {
  switch (status) {
    case "completed":
    case "max_turns":
    case "budget_exhausted":
    case "deadline_exceeded":
    case "guardrail_tripped":
    case "cancelled":
    case "paused":
    case "failed":
    case "max_output":
      return 0;
    default:
      return status satisfies never;
  }
}

export function notEveryStatus(status: RunStatus): number {
  switch (status) {
    case "completed":
      return 0;
    // @ts-expect-error -- "succeeded" is not a status
    case "succeeded":
      return 1;
    default:
      // @ts-expect-error -- eight statuses are not handled
      return status satisfies never;
  }
}

// Types of faults.

export function faults(code: FaultCode): void {
  void new Fault("not_found", "run run_7 is not in the store");
  void new Fault("model_rate_limit", "slow down", { details: { retryAfterMs: 100 } });
  // @ts-expect-error -- only CancellationError may have this code
  void new Fault("cancelled", "user stopped");
  // @ts-expect-error -- only CancellationError may have this code, also with options
  void new Fault("cancelled", "user stopped", {});
  // @ts-expect-error -- only BudgetExhaustedError may have this code
  void new Fault("budget_exhausted", "Token budget exceeded: 4200 > 4000");
  // @ts-expect-error -- only MiddlewareTermination may have this code
  void new Fault("guardrail_tripped", "PII found");
  // @ts-expect-error -- the code may be one that needs a subclass
  void new Fault(code, "m");
  // @ts-expect-error -- "oops" is not a fault code
  void new Fault("oops", "m");
  // @ts-expect-error -- "model_oops" is not a fault code
  void new Fault("model_oops", "m");
  // @ts-expect-error -- details must be JSON
  void new Fault("internal", "m", { details: { at: new Date() } });
  // @ts-expect-error -- "beer" is not a budget dimension
  void new BudgetExhaustedError({ dimension: "beer", limit: 1, used: 2 });
  // @ts-expect-error -- "late" is not a status
  void new CancellationError("m", { status: "late" });
}

export function caught(error: unknown): string {
  if (error instanceof CancellationError) {
    const code: "cancelled" = error.code;
    return `${code}: ${error.reason}`;
  }
  if (error instanceof BudgetExhaustedError) return `${error.dimension} ${error.used} > ${error.limit}`;
  if (error instanceof Fault) {
    // @ts-expect-error -- retry is derived from the code and read-only
    error.retry = "backoff";
    return error.code;
  }
  return "";
}

// Types of ids.

export type Ids = [
  Expect<Assignable<AgentId, string>>,
  Expect<Equal<Assignable<string, AgentId>, false>>,
  Expect<Equal<Assignable<RunId, SessionId>, false>>,
  Expect<Equal<Assignable<SessionId, RunId>, false>>,
  Expect<Equal<Assignable<TaskId, RunId>, false>>,
  Expect<Equal<Assignable<TopicId, AgentId>, false>>,
  Expect<Equal<Assignable<StepAddress, TaskId>, false>>,
];

export function ids(supervision: Supervision, load: (run: RunId, task: TaskId) => void): void {
  const [run, task] = [parseRunId("run_7"), formatTaskId(0)];
  load(run, task);
  // @ts-expect-error -- the arguments are swapped
  load(task, run);
  // @ts-expect-error -- a session id is not a run id
  load(parseSessionId("ses_7"), task);
  // @ts-expect-error -- a plain string is not an id
  load("run_7", "t0");
  supervision.spawnChild({ parentId: formatAgentId({ name: "lead" }) });
  // @ts-expect-error -- a run id is not an agent id
  supervision.spawnChild({ parentId: run });
  stepAt("", 0);
  // @ts-expect-error -- a plain string is not a scope
  stepAt("0/left", 0);
}

// An agent's code may emit only the events that belong to it.

export function told(ctx: RunContext, turn: Turn): void {
  const note = eventDraft("architecture_event", { architecture: "own", name: "own.seen", data: {} });
  const settled = eventDraft("settled", { sessionId: parseSessionId("ses_7") });
  ctx.emitEvent(note);
  ctx.emitEvent(settled, turn);
  // @ts-expect-error -- a draft with this type must be emitted together with its turn
  ctx.emitEvent(settled);
  // @ts-expect-error -- only the runtime emits run_pause
  ctx.emitEvent(eventDraft("run_pause", { by: "alice" }), turn);
}

// Frozen objects have read-only types, and `JsonValue` contains only JSON.

export function frozen(supervision: Supervision, meta: RunMeta): void {
  // @ts-expect-error -- the fields of a node are read-only
  supervision.depth = 1;
  // @ts-expect-error -- the spawn budget is shared by the whole tree and read-only
  supervision.spawnBudget.maxAgents = 99;
  // @ts-expect-error -- the execution budget is read-only
  supervision.executionBudget.maxTokens = null;
  // @ts-expect-error -- the metadata are read-only
  meta.deadline = 0;
  // @ts-expect-error -- the table of priorities is read-only
  Priority.HIGH = 9;
  // @ts-expect-error -- maxToken is not a budget dimension
  executionBudget({ maxToken: 1 });
}

export function json(value: unknown): JsonValue {
  // @ts-expect-error -- the value is unknown until it is asserted
  const early: JsonValue = value;
  // @ts-expect-error -- undefined is not JSON
  const absent: JsonValue = undefined;
  // @ts-expect-error -- a date is not JSON
  const date: JsonValue = new Date();
  void [early, absent, date];
  assertJson(value);
  return value;
}
