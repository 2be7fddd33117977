import {
  checkOptions,
  optionNames,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
} from "../../kernel/index.ts";
import { requireCount } from "./option-checks.ts";
import { runInner } from "./inner-run.ts";
import { parseTextList } from "./list-parsing.ts";
import {
  askAnsweringRole,
  askSupportingRole,
  loadPromptContext,
  markdownSections,
  type PromptContext,
} from "./prompt-context.ts";
import { react, inputText } from "./react.ts";
import { architectureEvent } from "./role-call.ts";
import { setAnswer } from "./answer-text.ts";
import { appendUserMessages } from "./user-messages.ts";

/** Options of `planAndExecute`. */
export interface PlanAndExecuteOptions {
  /** Maximum number of steps. Steps of a longer plan are not executed; the prompt of the synthesizer lists them. Default: 8. */
  readonly maxSteps?: number;
  /** Architecture that executes each step, with the agent's tools. Default: `react()`. */
  readonly base?: Architecture;
  /** Maximum number of turns of one step. Default: the agent's `maxTurns`. */
  readonly maxTurnsPerStep?: number;
}

/** A step that was executed. */
interface DoneStep {
  readonly step: string;
  readonly result: string;
  /** Why the step ended early; `null` means that it did not. */
  readonly interruptionReason: string | null;
}

/** A plan and its progress. */
interface Plan {
  /** Number of messages in the session when the plan was made. */
  readonly from: number;
  readonly steps: readonly string[];
  /** Steps beyond `maxSteps`, which are not executed. */
  readonly left: readonly string[];
  readonly done: DoneStep[];
  /** What the user added while the plan was executed. */
  readonly userAdditions: string[];
}

const knownOptions = optionNames<PlanAndExecuteOptions>({
  maxSteps: true,
  base: true,
  maxTurnsPerStep: true,
});

/**
 * Makes a plan, executes its steps one after another and writes the answer. Each step runs in a session of its own that
 * sees the task, the plan and the results so far.
 *
 * Roles: `planner`, `executor`, `synthesizer`.
 */
export class PlanAndExecute implements Architecture {
  readonly name = "plan-and-execute";
  readonly base: Architecture;
  readonly #maxSteps: number;
  readonly #maxTurns: number | undefined;

  constructor(options: PlanAndExecuteOptions = {}) {
    checkOptions("planAndExecute()", options, knownOptions);
    const { maxSteps = 8, base = react(), maxTurnsPerStep } = options;
    this.base = base;
    this.#maxSteps = requireCount("planAndExecute", "maxSteps", maxSteps);
    if (maxTurnsPerStep !== undefined) requireCount("planAndExecute", "maxTurnsPerStep", maxTurnsPerStep);
    this.#maxTurns = maxTurnsPerStep;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    const from = session.messages.length;
    yield architectureEvent("plan", "planner_started");
    const reply = await askSupportingRole(session, deps, promptContext, {
      role: "planner",
      roleInstructions: `You plan work that others carry out. Split the task into as few steps as possible, ${this.#maxSteps} at most. Each step must be understandable on its own, and the steps must be in the order in which they are to be done. Reply with a JSON list of texts and nothing else. Reply with an empty list if the task can be answered at once.`,
      prompt: markdownSections({ Task: prompt, Tools: toolLines(deps) }),
    });
    const parsedSteps = parseTextList(reply);
    if (parsedSteps === undefined) {
      session.output = reply;
      session.interrupted = true;
      session.interruptionReason = "unreadable_plan";
      return;
    }
    const steps = parsedSteps.slice(0, this.#maxSteps);
    const plan: Plan = { from, steps, left: parsedSteps.slice(this.#maxSteps), done: [], userAdditions: [] };
    session.metadata["plan"] = toJson(plan);
    yield steps.length === 0
      ? architectureEvent("plan", "empty_plan")
      : architectureEvent("plan", "created", { steps, left: plan.left });
    for (const number of steps.keys()) yield* this.#carryOut(session, deps, promptContext, plan, number + 1);
    yield architectureEvent("plan", "synthesizer_started");
    const answer = await askAnsweringRole(session, deps, promptContext, {
      role: "synthesizer",
      roleInstructions:
        "Answer the task from the results of the work that was done for it. If something is missing, say what; do not mention the plan.",
      prompt: markdownSections({
        Task: prompt,
        "The user added": plan.userAdditions.join("\n"),
        Results: resultsOf(plan),
        "Not done": plan.left.join("\n"),
      }),
    });
    if (!setAnswer(session, answer)) yield architectureEvent("plan", "empty_answer");
    yield architectureEvent("plan", "completed", { steps: steps.length });
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.base.declaredWorkers();
  }

  /** Executes one step in a session of its own. What the user adds meanwhile is shown to the following steps. */
  async *#carryOut(
    session: AgentSession,
    deps: Dependencies,
    promptContext: PromptContext,
    plan: Plan,
    number: number,
  ): AsyncGenerator<EmittableEvent, void> {
    const { ctx, steering } = deps;
    const step = plan.steps[number - 1] ?? "";
    ctx.check();
    yield architectureEvent("plan", "step_started", { number, step });
    const inner = deps.freshSession(`step_${number}`, instructionsOf(promptContext));
    inner.attachments = promptContext.attachments;
    yield* runInner(session, {
      base: this.base,
      inner,
      deps: deps.scopeForWorker("executor").withMaxTurns(this.#maxTurns ?? deps.maxTurns),
      prompt: markdownSections({
        Task: promptContext.prompt,
        Plan: plan.steps.map((each, index) => `${index + 1}. ${each}`).join("\n"),
        "Results so far": resultsOf(plan),
        "The user added": plan.userAdditions.join("\n"),
        [`Your step: number ${number}`]: step,
      }),
    });
    const done: DoneStep = { step, result: inner.output, interruptionReason: inner.interruptionReason };
    plan.done.push(done);
    session.output = resultsOf(plan);
    session.metadata["plan"] = toJson(plan);
    yield architectureEvent("plan", "step_completed", { number, ...done });
    const inputs = steering === null ? [] : await ctx.steering({ mode: steering });
    if (inputs.length > 0) yield architectureEvent("plan", "steering_injected", { inputs });
    appendUserMessages(session, { ...promptContext, from: plan.from }, inputs);
    plan.userAdditions.push(...inputs.map(inputText));
  }
}

/**
 * Creates an architecture that plans first, then executes the plan step by step, then writes the answer. Use it for
 * tasks of several parts that build on each other.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { planAndExecute } from "reeve/architectures";
 *
 * const agent = new Agent({
 *   name: "migrator",
 *   model: "anthropic/claude-sonnet-5",
 *   architecture: planAndExecute({ maxSteps: 5 }),
 * });
 * ```
 */
export function planAndExecute(options?: PlanAndExecuteOptions): PlanAndExecute {
  return new PlanAndExecute(options);
}

function instructionsOf({ instructionsWithoutFormat }: PromptContext): string {
  const roleInstructions =
    "You carry out one step of a plan. Do only this step, and end with its result in words that the next steps can use.";
  return instructionsWithoutFormat === ""
    ? roleInstructions
    : `${instructionsWithoutFormat}\n\n${roleInstructions}`;
}

function toolLines({ tools }: Dependencies): string {
  return tools
    .list()
    .map(({ name, description }) => `- ${name}: ${description}`)
    .join("\n");
}

function resultsOf({ done }: Plan): string {
  return done
    .map(({ step, result, interruptionReason }, index) => {
      const early = interruptionReason === null ? "" : ` (ended early: ${interruptionReason})`;
      return `${index + 1}. ${step}${early}\n${result}`;
    })
    .join("\n\n");
}

function toJson({ steps, left, done }: Plan): JsonObject {
  return { steps, left, done: done.map((each) => ({ ...each })) };
}
