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
} from "../../kernel/index.ts";
import { requireCount } from "./option-checks.ts";
import {
  askAnsweringRole,
  askSupportingRole,
  loadPromptContext,
  markdownSections,
} from "./prompt-context.ts";
import { architectureEvent } from "./role-call.ts";
import { setAnswer } from "./answer-text.ts";
import {
  fillPlaceholders,
  dependencyLevels,
  parseToolPlan,
  unknownPlaceholders,
  type CallOutputs,
  type PlannedCall,
} from "./tool-plan.ts";

export interface ReWooOptions {
  /** Calls of a longer plan that come after are not made. 8 unless told. */
  readonly maxSteps?: number;
  /** `false`: one call after another, also where none needs another. */
  readonly parallelLevels?: boolean;
}

interface Evidence {
  readonly id: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly output: string;
  readonly isError: boolean;
}

/**
 * Plans every tool call before the first is made, makes those that need nothing of each other side by side, and answers from what they
 * gave: two model calls, however many tools. A call that fails is evidence too. Roles: `planner`, `solver`.
 */
export class ReWoo implements Architecture {
  readonly name = "rewoo";
  readonly #maxSteps: number;
  readonly #parallel: boolean;

  constructor({ maxSteps = 8, parallelLevels = true }: ReWooOptions = {}) {
    this.#maxSteps = requireCount("rewoo", "maxSteps", maxSteps);
    this.#parallel = parallelLevels;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    yield architectureEvent("rewoo", "planner_started");
    const reply = await askSupportingRole(session, deps, promptContext, {
      role: "planner",
      duty: `You plan the tool calls that a task needs, all of them before the first is made; you do not see their results. Answer with a JSON list and nothing else: [{"id": "E1", "tool": "name", "args": {}}], ${this.#maxSteps} calls at most. Where a call needs what an earlier one gives, write {{E1}} into its args, alone or inside a text. Calls that do not need each other are made at once. Answer with an empty list when no tool is needed.`,
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
      duty: "Answer the task from what the tools gave. A tool that failed gave nothing: say what is missing, if anything is.",
      prompt: markdownSections({
        Task: prompt,
        "What the tools gave": evidenceText(evidence),
        "Planned, and not done": left.map((call) => canonicalJson(toJson(call))).join("\n"),
      }),
    });
    if (!setAnswer(session, answer)) yield architectureEvent("rewoo", "empty_answer");
    yield architectureEvent("rewoo", "completed", { steps: calls.length });
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }
}

/** All tool calls planned at once, made level by level, then the answer. */
export function rewoo(options?: ReWooOptions): ReWoo {
  return new ReWoo(options);
}

/** `known`: what the calls before gave, by id; these are added to it. A call that cannot be made gives nothing that others could use. */
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
      evidenceById.get(call.id) ??
      evidenceOf(call, { output: `It was not called: ${problem}.`, isError: true }),
  );
}

function evidenceOf(
  { id, tool, args }: PlannedCall,
  outcome: Pick<Evidence, "output" | "isError">,
): Evidence {
  return { id, tool, args, ...outcome };
}

function callProblem({ args, problem }: PlannedCall, outputs: CallOutputs): string | undefined {
  if (problem !== undefined) return problem;
  const unknown = unknownPlaceholders(args, outputs);
  if (unknown.length === 0) return undefined;
  return `nothing is known for ${unknown.map((name) => `{{${name}}}`).join(", ")} in its args`;
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
  return lines.join("\n") || "There are none.";
}

function interrupt(session: AgentSession, reason: string, output: string): void {
  session.output = output;
  session.interrupted = true;
  session.interruptionReason = reason;
}

function toJson(call: PlannedCall | Evidence): JsonObject {
  return { ...call };
}
