import {
  describeValue,
  Fault,
  type DrainMode,
  type InputQueue,
  type JsonValue,
  type MapOptions,
  type ParallelOptions,
  readProperty,
  type TaskHandle,
  type TaskReport,
  type ToolCall,
  type ToolsOptions,
  is,
  optionTable,
  type OptionKinds,
  type CompensationOptions,
  type StepOptions,
  type WaitForSignalOptions,
  type WaitForUpdateOptions,
  type UncancellableOptions,
  defaultStepRetry,
  stepRetry,
  type StepRetry,
} from "../../kernel/index.ts";
import { checkNextRuns } from "./next-run-check.ts";

/** Options of `ctx.ask`. They are checked, because a misspelt timeout would wait forever. */
export interface WaitOptions {
  readonly timeoutMs?: number;
}

/** Options of `ctx.steering` and `ctx.followUps`. */
export interface DrainOptions {
  readonly mode?: DrainMode;
}

// The step of a wait checks the timeout, so that a replay does not repeat the check.
const waitTable = optionTable({ timeoutMs: is.any } satisfies OptionKinds<WaitOptions>);
const acceptingTable = optionTable({
  timeoutMs: is.any,
  accept: is.callback(),
} satisfies OptionKinds<WaitForUpdateOptions & WaitForSignalOptions>);
const timeoutKind = is.number({ or: [null, "a timeout at once"] });
const drainTable = optionTable({ mode: is.choice(["one", "all"]) } satisfies OptionKinds<DrainOptions>);
const stepTable = optionTable({
  input: is.any,
  // `false`, or settings that `stepRetry` checks.
  retry: is.any,
  timeoutMs: is.number({ from: 1 }),
  idempotencyKey: is.text({ empty: false }),
  // A text or a list of texts.
  formerly: is.any,
} satisfies OptionKinds<StepOptions>);
const compensationTable = optionTable({
  retry: is.any,
  timeoutMs: is.number({ from: 1 }),
  idempotencyKey: is.text({ empty: false }),
  // A text or a list of texts.
  formerly: is.any,
} satisfies OptionKinds<CompensationOptions>);
const uncancellableTable = optionTable({
  timeoutMs: is.number({ from: 1 }),
} satisfies OptionKinds<UncancellableOptions>);
const toolsTable = optionTable({
  extra: is.list(),
  only: is.list({ of: is.text() }),
  maxParallel: is.integer({ from: 1 }),
  onResult: is.callback(),
} satisfies OptionKinds<ToolsOptions>);
const parallelTable = optionTable({ stopOnFault: is.boolean() } satisfies OptionKinds<ParallelOptions>);
const mapTable = optionTable({
  concurrency: is.integer({ from: 1, default: Number.MAX_SAFE_INTEGER }),
} satisfies OptionKinds<MapOptions>);
const reportTable = optionTable({
  output: is.any,
  interruption: is.any,
  finishReason: is.any,
  sessions: is.list(),
  next: is.list(),
  metadata: is.any,
  work: is.any,
  abandoned: is.callback(),
} satisfies OptionKinds<TaskReport>);

/** The number of inputs that one read takes, by mode. */
export const maxDrained: Readonly<Record<DrainMode, number>> = { one: 1, all: Infinity };

// Absent options cost nothing: these functions are called in every turn.

/** Creates the fault for an argument of the wrong kind. `use` says what to write instead. */
function invalid(what: string, value: unknown, owner: string, expected: string, use: string): Fault {
  return new Fault(
    "invalid_argument",
    `invalid ${what} ${describeValue(value)} of ${owner}: expected ${expected}; use ${use}`,
  );
}

/** Throws for an argument that is not a function, such as a promise of work that has already started. */
export function requireFunction(owner: string, what: string, value: unknown, use: string): void {
  if (typeof value !== "function") throw invalid(what, value, owner, "a function", use);
}

/** Throws for branches that are not functions by name. */
export function requireBranches(owner: string, branches: unknown): void {
  const use = `${owner.slice(0, -1)}{ first: async (branch) => value })`;
  if (typeof branches !== "object" || branches === null || Array.isArray(branches))
    throw invalid("branches", branches, owner, "an object with a function for each name", use);
  for (const [name, branch] of Object.entries(branches))
    requireFunction(owner, `branch ${name}`, branch, use);
}

/** Throws for a resource that could not be opened or closed. */
export function checkResource(open: unknown, close: unknown): void {
  const use = "ctx.resource(async () => connect(), async (connection) => connection.close())";
  requireFunction("ctx.resource()", "open", open, use);
  requireFunction("ctx.resource()", "close", close, use);
}

/** Throws if the plan of a turn returns something that is not a plan. */
export function requirePlan(planned: unknown): void {
  if (typeof readProperty(planned, "instructions") === "string") return;
  throw invalid("plan", planned, "ctx.turn()", "a text as instructions", "{ input, instructions, tools }");
}

/** Throws for tool calls that are not a list, and for an entry without the name of its tool or an id. */
function requireCalls(calls: unknown): void {
  const call = '{ callId: "1", toolName: "read", input: { ... } }';
  if (!Array.isArray(calls)) throw invalid("calls", calls, "ctx.tools()", "an array", `ctx.tools([${call}])`);
  for (const each of calls as readonly (Partial<ToolCall> | null | undefined)[])
    if (!isFilled(each?.callId) || !isFilled(each?.toolName))
      throw invalid(
        "call",
        each,
        "ctx.tools()",
        "the id of the call, the name of the tool and its input",
        call,
      );
}

function isFilled(text: unknown): boolean {
  return typeof text === "string" && text !== "";
}

/** Throws for a target that is not the id of an agent or a workflow, such as the agent object itself. */
export function requireAgentId(owner: string, target: unknown): void {
  if (isFilled(target)) return;
  const use = isFilled(readProperty(target, "id"))
    ? "its id"
    : 'formatAgentId({ name: "scout" }), or agent.id';
  throw invalid("target", target, owner, "the id of an agent", use);
}

/** Throws for a value that is not a message of an inbox. */
export function requireInboxMessage(message: unknown): void {
  if (isFilled(readProperty(message, "id"))) return;
  throw invalid(
    "message",
    message,
    "ctx.reply()",
    "a message of the inbox",
    "one of the list that run() received",
  );
}

/** Throws for a value that is not the handle of a child, such as the whole outcome of `ctx.spawn`. */
export function requireHandle(
  owner: string,
  value: unknown,
  expected = "the handle of a child",
): asserts value is TaskHandle {
  if (typeof readProperty(value, "taskId") === "string") return;
  const kind = readProperty(value, "kind");
  const fix =
    kind === "spawned"
      ? "pass outcome.handle, not the outcome of ctx.spawn() itself"
      : kind === "refused"
        ? "the spawn was refused, so that there is no child; read outcome.kind first"
        : 'use the handle of an outcome of ctx.spawn() whose kind is "spawned"';
  throw new Fault(
    "invalid_argument",
    `invalid target ${describeValue(value)} of ${owner}: expected ${expected}; ${fix}`,
  );
}

/** Throws for a list with an entry that is not the handle of a child. */
export function requireHandles(owner: string, handles: unknown): asserts handles is readonly TaskHandle[] {
  if (!Array.isArray(handles)) throw invalid("handles", handles, owner, "an array", "ctx.joinAll([handle])");
  for (const handle of handles as readonly unknown[]) requireHandle(owner, handle);
}

export function checkWaitOptions(owner: string, options: WaitOptions | undefined): void {
  if (options !== undefined) waitTable.read(owner, options);
}

/** Checks the options of a wait whose value the code may refuse. */
export function checkAcceptingWait(
  owner: string,
  options: WaitForUpdateOptions | WaitForSignalOptions,
): void {
  acceptingTable.read(owner, options);
}

/** Throws for a timeout that is not a number. A negative number and `null` end the wait at once. */
export function checkTimeout(timeoutMs: unknown): void {
  timeoutKind.check?.(timeoutMs, "timeoutMs", "ctx.ask(), ctx.waitForSignal() or ctx.waitForUpdate()");
}

export function checkDrainOptions(queue: InputQueue, options: DrainOptions): void {
  const owner = queue === "steer" ? "ctx.steering()" : "ctx.followUps()";
  drainTable.read(owner, options);
}

/** Returns the input of a task that is not the root and receives none: an empty list. */
export function noInput(queue: InputQueue, options: DrainOptions): readonly JsonValue[] {
  checkDrainOptions(queue, options);
  return [];
}

/** The options of a workflow's step that sets none: it is retried with the default settings. */
export const retriedStep: StepOptions = Object.freeze({ retry: defaultStepRetry });

/** Checks the options of `ctx.step`. Returns how the step is retried, or `undefined` if it has one attempt. */
export function readStepOptions(name: string, options: StepOptions | undefined): StepRetry | undefined {
  if (options === undefined) return undefined;
  if (options === retriedStep) return defaultStepRetry;
  const { retry } = stepTable.read("ctx.step()", options);
  checkFormerly("ctx.step()", options.formerly);
  return retry === undefined || retry === false ? undefined : stepRetry(retry, `step ${name}`);
}

function checkFormerly(owner: string, formerly: unknown): void {
  const names = Array.isArray(formerly) ? (formerly as readonly unknown[]) : [formerly];
  if (formerly === undefined || names.every((name) => typeof name === "string" && name !== "")) return;
  throw new Fault(
    "invalid_argument",
    `invalid formerly ${describeValue(formerly)} of ${owner}: expected a former name of the step, or a list of them; use formerly: "charge"`,
  );
}

const patchName = /^[A-Za-z0-9_.-]{1,64}$/u;

/** Throws for a name in `ctx.patched` that cannot be part of an address. */
export function checkPatchName(name: unknown): void {
  if (typeof name === "string" && patchName.test(name)) return;
  throw new Fault(
    "invalid_argument",
    `invalid name ${describeValue(name)} of ctx.patched(): expected 1 to 64 letters, digits, and _ . -; use ctx.patched("vat-2027")`,
  );
}

export function checkCompensationOptions(options: CompensationOptions): void {
  compensationTable.read("ctx.compensate()", options);
  checkFormerly("ctx.compensate()", options.formerly);
  if (options.retry !== undefined && options.retry !== false) stepRetry(options.retry, "ctx.compensate()");
}

export function checkUncancellable(branch: unknown, options: UncancellableOptions): void {
  requireFunction("ctx.uncancellable()", "branch", branch, "ctx.uncancellable(async (branch) => value)");
  uncancellableTable.read("ctx.uncancellable()", options);
}

export function checkTools(calls: unknown, options: ToolsOptions | undefined): void {
  if (options !== undefined) toolsTable.read("ctx.tools()", options);
  requireCalls(calls);
}

export function checkParallel(branches: unknown, options: ParallelOptions | undefined): void {
  if (options !== undefined) parallelTable.read("ctx.parallel()", options);
  requireBranches("ctx.parallel()", branches);
}

/**
 * Checks the arguments of `ctx.map` and returns its options with their defaults. Throws if the arguments are not a
 * list and a function.
 */
export function readMap(
  items: unknown,
  perform: unknown,
  options: MapOptions | undefined,
): Required<MapOptions> {
  const use = "use ctx.map(items, async (item, branch) => value)";
  if (!Array.isArray(items))
    throw new Fault(
      "invalid_argument",
      `invalid items ${describeValue(items)} of ctx.map(): expected an array; ${use}`,
    );
  if (typeof perform !== "function")
    throw new Fault(
      "invalid_argument",
      `invalid function ${describeValue(perform)} of ctx.map(): expected a function; ${use}`,
    );
  return mapTable.read("ctx.map()", options ?? {});
}

export function checkReport(report: TaskReport, isRoot: boolean): void {
  reportTable.read("ctx.report()", report);
  if (report.next !== undefined) checkNextRuns(report.next, isRoot);
}

/** Throws for instructions of a compaction that are not a text, or are empty. */
export function checkInstructions(instructions: unknown): void {
  if (typeof instructions === "string" && instructions.trim() !== "") return;
  throw new Fault(
    "invalid_argument",
    `invalid instructions ${describeValue(instructions)} of ctx.requestCompaction(): expected a text that is not empty; omit them for a compaction without instructions`,
  );
}
