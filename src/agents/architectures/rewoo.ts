import {
  canonicalJson,
  textOf,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
  type ToolOutput,
  type ToolResult,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import {
  askAnsweringRole,
  askSupportingRole,
  loadPromptContext,
  markdownSections,
} from "../context/prompt-context.ts";
import { architectureEvent } from "../context/role-call.ts";
import { setAnswer } from "../base/answer-text.ts";
import {
  filledLength,
  fillPlaceholders,
  dependencyLevels,
  parseToolPlan,
  unknownPlaceholders,
  type CallOutputs,
  type PlannedCall,
} from "./tool-plan.ts";

/** Options of `rewoo`. */
export interface ReWooOptions {
  /**
   * Maximum number of tool calls. Further calls of a longer plan are not made; the prompt of the solver lists them.
   * Default: 8.
   */
  readonly maxSteps?: number;
  /** Whether calls that do not depend on each other are made in parallel. Default: `true`. */
  readonly parallelLevels?: boolean;
}

/** The result of one planned call. */
interface Evidence {
  readonly id: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly output: string;
  readonly isError: boolean;
}

const knownOptions = optionTable({
  maxSteps: is.integer({ from: 1, default: 8 }),
  parallelLevels: is.boolean({ default: true }),
} satisfies OptionKinds<ReWooOptions>);

/**
 * Plans every tool call before the first one is made, makes independent calls in parallel, and answers from their
 * results. This takes two model calls for any number of tools; a failed call is evidence too.
 *
 * Roles: `planner`, `solver`.
 */
export class ReWoo implements Architecture {
  readonly name = "rewoo";
  readonly #maxSteps: number;
  readonly #parallel: boolean;

  constructor(options: ReWooOptions = {}) {
    const { maxSteps, parallelLevels } = knownOptions.read("rewoo()", options);
    this.#maxSteps = maxSteps;
    this.#parallel = parallelLevels;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    yield architectureEvent("rewoo", "planner_started");
    const reply = await askSupportingRole(session, deps, promptContext, {
      role: "planner",
      roleInstructions: `You plan all tool calls that a task needs before the first one is made; you do not see their results. Reply with a JSON list and nothing else: [{"id": "E1", "tool": "name", "args": {}}], ${this.#maxSteps} calls at most. If a call needs the output of an earlier call, write {{E1}} into its args, alone or inside a text. Calls that do not depend on each other are made at once. Reply with an empty list if no tool is needed.`,
      prompt: markdownSections({ Task: prompt, Tools: toolLines(deps) }),
    });
    const plan = parseToolPlan(reply);
    if (plan === undefined) return interrupt(session, "unreadable_plan", reply);
    const calls = plan.slice(0, this.#maxSteps);
    const left = plan.slice(this.#maxSteps);
    const levels = dependencyLevels(calls);
    const planned = { steps: calls.map(toJson), left: left.map(toJson) };
    session.metadata["plan"] = planned;
    if (levels === undefined) {
      yield architectureEvent("rewoo", "cyclic_plan", planned);
      return interrupt(session, "cyclic_plan", reply);
    }
    yield calls.length === 0
      ? architectureEvent("rewoo", "empty_plan")
      : architectureEvent("rewoo", "plan_created", planned);
    const evidence: Evidence[] = [];
    const outputs = new Map<string, string | undefined>();
    for (const [index, level] of levels.entries()) {
      yield architectureEvent("rewoo", "level_started", {
        level: index + 1,
        steps: level.map(({ id }) => id),
      });
      for (const batch of this.#parallel ? [level] : level.map((call) => [call])) {
        const evidenceById = await makeCalls(deps, batch, outputs);
        evidence.push(...evidenceById);
        session.metadata["evidence"] = evidence.map(toJson);
        session.output = evidenceText(evidence);
        for (const { id, tool, output, isError } of evidenceById)
          yield architectureEvent("rewoo", "step_completed", { id, tool, output, isError });
      }
    }
    yield architectureEvent("rewoo", "solver_started");
    const answer = await askAnsweringRole(session, deps, promptContext, {
      role: "solver",
      roleInstructions:
        "Answer the task from the outputs of the tools. A failed tool has no usable output. If something is missing, say what.",
      prompt: markdownSections({
        Task: prompt,
        "Tool outputs": evidenceText(evidence),
        "Planned, but not done": left.map((call) => canonicalJson(toJson(call))).join("\n"),
      }),
    });
    if (!setAnswer(session, answer)) yield architectureEvent("rewoo", "empty_answer");
    yield architectureEvent("rewoo", "completed", { steps: calls.length });
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }
}

/**
 * Creates an architecture that plans all tool calls at once, makes them, and then answers. Use it if the calls can be
 * foreseen and you want to avoid a model call per turn.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { rewoo } from "reeve/architectures";
 *
 * const agent = new Agent({
 *   name: "reporter",
 *   model: "anthropic/claude-sonnet-5",
 *   architecture: rewoo({ maxSteps: 4 }),
 * });
 * ```
 */
export function rewoo(options?: ReWooOptions): ReWoo {
  return new ReWoo(options);
}

/**
 * Makes the calls of one level and adds their outputs to `outputs`. A call that cannot be made has the output
 * `undefined`. Calls that need its output cannot be made either.
 */
async function makeCalls(
  { ctx, tools }: Dependencies,
  calls: readonly PlannedCall[],
  outputs: Map<string, string | undefined>,
): Promise<readonly Evidence[]> {
  ctx.check();
  const checked = calls.map((call) => ({ call, problem: callProblem(call, outputs) }));
  const ready = checked.flatMap(({ call, problem }) =>
    problem === undefined ? [{ ...call, args: fillPlaceholders(call.args, outputs) }] : [],
  );
  const inputs = ready.map(({ id, tool, args }) => ({ callId: id, toolName: tool, input: args }));
  const results = inputs.length === 0 ? [] : await tools.callAll(inputs);
  const evidenceById = new Map(
    ready.map((call, index) => [call.id, evidenceOf(call, outcomeOf(results[index]))] as const),
  );
  for (const { id } of calls) outputs.set(id, evidenceById.get(id)?.output);
  return checked.map(
    ({ call, problem = "" }) =>
      evidenceById.get(call.id) ?? evidenceOf(call, { output: `Not called: ${problem}.`, isError: true }),
  );
}

function evidenceOf(
  { id, tool, args }: PlannedCall,
  outcome: Pick<Evidence, "output" | "isError">,
): Evidence {
  return { id, tool, args, ...outcome };
}

/**
 * Maximum number of characters that replace placeholders. Without a limit, a few calls that repeat each other's
 * output would use all memory.
 */
const longestArguments = 4 * 1024 * 1024;

function callProblem({ args, problem }: PlannedCall, outputs: CallOutputs): string | undefined {
  if (problem !== undefined) return problem;
  const unknown = unknownPlaceholders(args, outputs);
  if (unknown.length === 0) {
    const length = filledLength(args, outputs);
    return length <= longestArguments
      ? undefined
      : `its args would have more than ${longestArguments} characters`;
  }
  return `no output is known for ${unknown.map((name) => `{{${name}}}`).join(", ")} in its args`;
}

function outcomeOf(result: ToolResult | undefined): Pick<Evidence, "output" | "isError"> {
  return result === undefined
    ? { output: "", isError: true }
    : { output: outputText(result.output), isError: result.isError };
}

function outputText(output: ToolOutput): string {
  if (output.type === "text") return output.text;
  return output.type === "json" ? canonicalJson(output.value) : textOf(output.parts);
}

function evidenceText(evidence: readonly Evidence[]): string {
  return evidence
    .map(
      ({ id, tool, args, output, isError }) =>
        `${id} = ${tool} ${canonicalJson(args)}${isError ? " (failed)" : ""}\n${output}`,
    )
    .join("\n\n");
}

function toolLines({ tools }: Dependencies): string {
  const lines = tools
    .list()
    .map(
      ({ name, description, inputSchema }) =>
        `- ${name}: ${description}\n  args: ${canonicalJson(inputSchema)}`,
    );
  return lines.join("\n") || "No tools.";
}

function interrupt(session: AgentSession, reason: string, output: string): void {
  session.output = output;
  session.interrupted = true;
  session.interruptionReason = reason;
}

function toJson(call: PlannedCall | Evidence): JsonObject {
  return { ...call };
}
