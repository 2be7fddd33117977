import { fileURLToPath } from "node:url";
import {
  describeValue,
  Fault,
  nearestJson,
  readProperty,
  rootTaskId,
  stopsTask,
  withoutSecrets,
  type Failure,
  type JsonValue,
  type WorkflowContext,
} from "../kernel/index.ts";
import type { Score, ScorerFunction, ScorerInput, ScorerOutput } from "./contract.ts";
import { withoutOutsideCalls } from "./outside-calls.ts";
import { isDurable, type NamedScorer } from "./score.ts";

/** How a scorer is run. */
export interface RunScorerOptions {
  /** The context of the branch that executes the scorer. Needed only by a durable scorer. */
  readonly ctx?: WorkflowContext;
  /**
   * Whether the experiment has a budget. A scorer function may then send HTTP requests only to the gateway.
   * Default: `false`.
   */
  readonly hasBudget?: boolean;
}

/**
 * Runs a scorer for one trial. A scorer that throws, or returns anything but a score from 0 to 1, is a score with
 * an error and never a zero. Faults that stop the experiment itself, such as an exhausted budget or a cancel, are
 * thrown.
 */
export async function runScorer(
  { name, scorer }: NamedScorer,
  given: ScorerInput,
  { ctx, hasBudget = false }: RunScorerOptions = {},
): Promise<Score> {
  try {
    return readScore(name, await outputOf({ name, scorer }, given, hasBudget, ctx));
  } catch (error) {
    if (isDurable(scorer)) {
      // A cancel of the experiment is no failure of its scorer.
      ctx?.check();
      if (mustEndTask(error)) throw error;
    }
    return failedScore(`scorer ${name} failed: ${messageOf(error)}${placeOf(error)}`);
  }
}

function outputOf(
  { name, scorer }: NamedScorer,
  given: ScorerInput,
  hasBudget: boolean,
  ctx: WorkflowContext | undefined,
): Promise<ScorerOutput> {
  if (isDurable(scorer)) {
    if (ctx !== undefined) return scorer.score(given, ctx);
    throw new Fault("invalid_argument", `scorer ${name} does durable work and can only run in an experiment`);
  }
  const call = async (): Promise<ScorerOutput> => (scorer as ScorerFunction)(given);
  return hasBudget ? withoutOutsideCalls(name, call) : call();
}

/**
 * Whether the budget of the experiment, or a spending cap, has ended the work. The budget of an agent below it ends
 * only the work of this agent.
 */
export function endsExperiment({ code, details }: Failure | Fault): boolean {
  if (code !== "budget_exhausted") return false;
  return details?.["cap"] !== undefined || details?.["taskId"] === rootTaskId;
}

/** Whether a branch cannot handle this fault, because the task itself must end or be executed by another worker. */
function mustEndTask(error: unknown): boolean {
  if (!Fault.is(error)) return false;
  if (error.code === "budget_exhausted") return endsExperiment(error);
  return stopsTask(error) || /^(?:journal|lease|store|version|engine)_/u.test(error.code);
}

/** Checks the value that a scorer returned. The scorer may be code of the user or of another package. */
function readScore(name: string, output: unknown): Score {
  const isObject = typeof output === "object" && output !== null;
  const value: unknown = isObject ? readProperty(output, "score") : output;
  const metadata = isObject ? nearestJson(readProperty(output, "metadata")) : null;
  // The package autoevals reports a failure of its own in this member.
  const error: unknown = isObject ? readProperty(output, "error") : undefined;
  if (error !== undefined && error !== null)
    return { ...failedScore(`scorer ${name} failed: ${messageOf(error)}`), metadata };
  const reason = reasonOf(output, metadata);
  if (isObject && value === null) return { score: null, reason, metadata, error: null };
  if (typeof value === "boolean") return { score: value ? 1 : 0, reason, metadata, error: null };
  if (typeof value === "number" && value >= 0 && value <= 1)
    return { score: value, reason, metadata, error: null };
  return failedScore(
    `invalid score ${describeValue(value)} of scorer ${name}: expected a number from 0 to 1, true or false, or an object such as { score: 0.5, reason: "..." }`,
  );
}

/** Returns the reason of a score. Judges of the package autoevals provide it as `rationale` in the metadata. */
function reasonOf(output: unknown, metadata: JsonValue): string | null {
  for (const reason of [readProperty(output, "reason"), readProperty(metadata, "rationale")])
    if (typeof reason === "string" && reason !== "") return reason;
  return null;
}

function failedScore(error: string): Score {
  return { score: null, reason: null, metadata: null, error };
}

function messageOf(error: unknown): string {
  if (typeof error === "string") return withoutSecrets(error);
  return withoutSecrets(Fault.from(error).message);
}

/**
 * Returns the file and line of the code that threw an error, in brackets. Empty for an error without a stack, and
 * for a fault of Reeve.
 */
function placeOf(error: unknown): string {
  const stack: unknown = Fault.is(error) ? undefined : readProperty(error, "stack");
  if (typeof stack !== "string") return "";
  const [, file, line] = /\(?((?:file:\/\/|\/|[A-Z]:\\)[^\n()]+?):(\d+):\d+\)?$/mu.exec(stack) ?? [];
  if (file === undefined) return "";
  return ` (${file.startsWith("file:") ? fileURLToPath(file) : file}:${line})`;
}
