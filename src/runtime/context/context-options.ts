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
  type ToolsOptions,
  is,
  optionTable,
  type OptionKinds,
  type CompensationOptions,
  type StepOptions,
  type WaitForSignalOptions,
  type WaitForUpdateOptions,
  type UncancellableOptions,
  stepRetry,
} from "../../kernel/index.ts";
import { checkNextRuns } from "./next-run-check.ts";

/** Options of `ctx.ask`. A misspelt timeout would wait forever. */
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
  idempotencyKey: is.text(),
  // A text or a list of texts.
  formerly: is.any,
} satisfies OptionKinds<StepOptions>);
const compensationTable = optionTable({
  retry: is.any,
  timeoutMs: is.number({ from: 1 }),
  idempotencyKey: is.text(),
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

/** The number of inputs that one drain takes. */
export const maxDrained: Readonly<Record<DrainMode, number>> = { one: 1, all: Infinity };

// Absent options cost nothing: these functions are called in every turn.

/** Refuses a value that is no handle of a child, such as the outcome of `ctx.spawn` itself. */
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

/** Refuses a timeout that is no number. A negative number and `null` are over at once. */
export function checkTimeout(timeoutMs: unknown): void {
  timeoutKind.check?.(timeoutMs, "timeoutMs", "ctx.ask(), ctx.waitForSignal() or ctx.waitForUpdate()");
}

export function checkDrainOptions(queue: InputQueue, options: DrainOptions): void {
  const owner = queue === "steer" ? "ctx.steering()" : "ctx.followUps()";
  drainTable.read(owner, options);
}

/** The drain of a task that is not the root, which receives no input. */
export function noInput(queue: InputQueue, options: DrainOptions): readonly JsonValue[] {
  checkDrainOptions(queue, options);
  return [];
}

export function checkStepOptions(options: StepOptions | undefined): void {
  if (options === undefined) return;
  stepTable.read("ctx.step()", options);
  checkFormerly("ctx.step()", options.formerly);
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

/** Refuses a name of `ctx.patched` that cannot be part of an address. */
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

export function checkUncancellableOptions(options: UncancellableOptions): void {
  uncancellableTable.read("ctx.uncancellable()", options);
}

export function checkToolsOptions(options: ToolsOptions | undefined): void {
  if (options !== undefined) toolsTable.read("ctx.tools()", options);
}

export function checkParallelOptions(options: ParallelOptions | undefined): void {
  if (options !== undefined) parallelTable.read("ctx.parallel()", options);
}

/** Refuses arguments of `ctx.map` that are no list and no function. Returns the options with their defaults. */
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

/** Refuses instructions of a compaction that are no text, or an empty one. */
export function checkInstructions(instructions: unknown): void {
  if (typeof instructions === "string" && instructions.trim() !== "") return;
  throw new Fault(
    "invalid_argument",
    `invalid instructions ${describeValue(instructions)} of ctx.requestCompaction(): expected a text that is not empty; omit them for a compaction without instructions`,
  );
}
