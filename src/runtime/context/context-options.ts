import {
  checkChoice,
  checkOptions,
  describeValue,
  Fault,
  optionNames,
  type DrainMode,
  type InputQueue,
  type JsonValue,
  type ParallelOptions,
  type TaskReport,
  type ToolsOptions,
} from "../../kernel/index.ts";
import { checkNextRuns } from "./next-run-check.ts";

/** Options of `ctx.ask` and `ctx.waitForSignal`. A misspelt timeout would wait forever. */
export interface WaitOptions {
  readonly timeoutMs?: number;
}

/** Options of `ctx.steering` and `ctx.followUps`. */
export interface DrainOptions {
  readonly mode?: DrainMode;
}

/** Options of `ctx.step`. */
export interface StepOptions {
  readonly input?: JsonValue;
}

const waitNames = optionNames<WaitOptions>({ timeoutMs: true });
const drainNames = optionNames<DrainOptions>({ mode: true });
const stepNames = optionNames<StepOptions>({ input: true });
const toolsNames = optionNames<ToolsOptions>({
  extra: true,
  only: true,
  maxParallel: true,
  onResult: true,
});
const parallelNames = optionNames<ParallelOptions>({ stopOnFault: true });
const reportNames = optionNames<TaskReport>({
  output: true,
  interruption: true,
  finishReason: true,
  sessions: true,
  next: true,
  metadata: true,
  abandoned: true,
});

/** The number of inputs that one drain takes. */
export const maxDrained: Readonly<Record<DrainMode, number>> = { one: 1, all: Infinity };
const drainModes = Object.keys(maxDrained);

// Absent options cost nothing: these functions are called in every turn.

export function checkWaitOptions(owner: string, options: WaitOptions | undefined): void {
  if (options !== undefined) checkOptions(owner, options, waitNames);
}

export function checkDrainOptions(queue: InputQueue, options: DrainOptions): void {
  const owner = queue === "steer" ? "ctx.steering()" : "ctx.followUps()";
  checkOptions(owner, options, drainNames);
  checkChoice(owner, "mode", options.mode, drainModes);
}

/** The drain of a task that is not the root, which receives no input. */
export function noInput(queue: InputQueue, options: DrainOptions): readonly JsonValue[] {
  checkDrainOptions(queue, options);
  return [];
}

export function checkStepOptions(options: StepOptions | undefined): void {
  if (options !== undefined) checkOptions("ctx.step()", options, stepNames);
}

export function checkToolsOptions(options: ToolsOptions | undefined): void {
  if (options === undefined) return;
  checkOptions("ctx.tools()", options, toolsNames);
  const { maxParallel = 1 } = options;
  if (Number.isSafeInteger(maxParallel) && maxParallel >= 1) return;
  throw new Fault(
    "invalid_argument",
    `invalid maxParallel ${describeValue(maxParallel)} of ctx.tools(): expected an integer from 1`,
  );
}

export function checkParallelOptions(options: ParallelOptions | undefined): void {
  if (options !== undefined) checkOptions("ctx.parallel()", options, parallelNames);
}

export function checkReport(report: TaskReport, isRoot: boolean): void {
  checkOptions("ctx.report()", report, reportNames);
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
