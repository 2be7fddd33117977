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
import { countOf } from "./bound.ts";
import { askAnswerer, askHelper, questionOf, titled } from "./question.ts";
import { note } from "./role-call.ts";
import { takeAnswer } from "./spoken-answer.ts";
import { filledIn, levelsOf, toolPlanIn, unknownIn, type Known, type PlannedCall } from "./tool-plan.ts";

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
    this.#maxSteps = countOf("rewoo", "maxSteps", maxSteps);
    this.#parallel = parallelLevels;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const question = await questionOf(session, deps, prompt);
    yield note("rewoo", "planner_started");
    const said = await askHelper(session, deps, question, {
      role: "planner",
      duty: `You plan the tool calls that a task needs, all of them before the first is made; you do not see their results. Answer with a JSON list and nothing else: [{"id": "E1", "tool": "name", "args": {}}], ${this.#maxSteps} calls at most. Where a call needs what an earlier one gives, write {{E1}} into its args, alone or inside a text. Calls that do not need each other are made at once. Answer with an empty list when no tool is needed.`,
      prompt: titled({ Task: prompt, Tools: toolLines(deps) }),
    });
    const plan = toolPlanIn(said);
    if (plan === undefined) return deadEnd(session, "unreadable_plan", said);
    const calls = plan.slice(0, this.#maxSteps);
    const left = plan.slice(this.#maxSteps);
    const levels = levelsOf(calls);
    const planned = { steps: calls.map(shown), left: left.map(shown) };
    session.metadata["plan"] = planned;
    if (levels === undefined) {
      yield note("rewoo", "cyclic_plan", planned);
      return deadEnd(session, "cyclic_plan", said);
    }
    yield calls.length === 0 ? note("rewoo", "empty_plan") : note("rewoo", "plan_created", planned);
    const evidence: Evidence[] = [];
    const known = new Map<string, string | undefined>();
    for (const [index, level] of levels.entries()) {
      yield note("rewoo", "level_started", { level: index + 1, steps: level.map(({ id }) => id) });
      for (const batch of this.#parallel ? [level] : level.map((call) => [call])) {
        const made = await makeCalls(deps, batch, known);
        evidence.push(...made);
        session.metadata["evidence"] = evidence.map(shown);
        session.output = evidenceText(evidence);
        for (const { id, tool, output, isError } of made)
          yield note("rewoo", "step_completed", { id, tool, output, isError });
      }
    }
    yield note("rewoo", "solver_started");
    const answer = await askAnswerer(session, deps, question, {
      role: "solver",
      duty: "Answer the task from what the tools gave. A tool that failed gave nothing: say what is missing, if anything is.",
      prompt: titled({
        Task: prompt,
        "What the tools gave": evidenceText(evidence),
        "Planned, and not done": left.map((call) => canonicalJson(shown(call))).join("\n"),
      }),
    });
    if (!takeAnswer(session, answer)) yield note("rewoo", "empty_answer");
    yield note("rewoo", "completed", { steps: calls.length });
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
  known: Map<string, string | undefined>,
): Promise<readonly Evidence[]> {
  ctx.check();
  const looked = calls.map((call) => ({ call, problem: problemOf(call, known) }));
  const ready = looked.flatMap(({ call, problem }) =>
    problem === undefined ? [{ ...call, args: filledIn(call.args, known) }] : [],
  );
  const inputs = ready.map(({ id, tool, args }) => ({ callId: id, toolName: tool, input: args }));
  const results = inputs.length === 0 ? [] : await tools.callAll(inputs);
  const made = new Map(
    ready.map((call, index) => [call.id, evidenceOf(call, outcomeOf(results[index]))] as const),
  );
  for (const { id } of calls) known.set(id, made.get(id)?.output);
  return looked.map(
    ({ call, problem = "" }) =>
      made.get(call.id) ?? evidenceOf(call, { output: `It was not called: ${problem}.`, isError: true }),
  );
}

function evidenceOf(
  { id, tool, args }: PlannedCall,
  outcome: Pick<Evidence, "output" | "isError">,
): Evidence {
  return { id, tool, args, ...outcome };
}

function problemOf({ args, problem }: PlannedCall, known: Known): string | undefined {
  if (problem !== undefined) return problem;
  const unknown = unknownIn(args, known);
  if (unknown.length === 0) return undefined;
  return `nothing is known for ${unknown.map((name) => `{{${name}}}`).join(", ")} in its args`;
}

function outcomeOf(result: ToolResult | undefined): Pick<Evidence, "output" | "isError"> {
  return result === undefined
    ? { output: "", isError: true }
    : { output: wordsOf(result.output), isError: result.isError };
}

function wordsOf(output: ToolOutput): string {
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

function deadEnd(session: AgentSession, reason: string, output: string): void {
  session.output = output;
  session.interrupted = true;
  session.interruptionReason = reason;
}

function shown(call: PlannedCall | Evidence): JsonObject {
  return { ...call };
}
