import type {
  AgentSession,
  Architecture,
  Dependencies,
  EmittableEvent,
  JsonObject,
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

export interface PlanAndExecuteOptions {
  /** Those of a longer plan that come after are not carried out, and the answer is written knowing it. 8 unless told. */
  readonly maxSteps?: number;
  /** What carries out each step, with the agent's tools. ReAct unless told. */
  readonly base?: Architecture;
  /** The agent's `maxTurns` unless told. */
  readonly maxTurnsPerStep?: number;
}

interface DoneStep {
  readonly step: string;
  readonly result: string;
  /** Why it ended early; `null`: it did not. */
  readonly interruptionReason: string | null;
}

interface Plan {
  /** How much had been said when it was made. */
  readonly from: number;
  readonly steps: readonly string[];
  /** Beyond the bound. */
  readonly left: readonly string[];
  readonly done: DoneStep[];
  readonly userAdditions: string[];
}

/**
 * Plans first, then carries out one step after another, each in a session of its own that sees the plan and the results so far, then
 * writes the answer. Roles: `planner`, `executor`, `synthesizer`.
 */
export class PlanAndExecute implements Architecture {
  readonly name = "plan-and-execute";
  readonly base: Architecture;
  readonly #maxSteps: number;
  readonly #maxTurns: number | undefined;

  constructor({ maxSteps = 8, base = react(), maxTurnsPerStep }: PlanAndExecuteOptions = {}) {
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
      duty: `You plan work that others carry out. Split the task into the fewest steps that do it, ${this.#maxSteps} at most, each of which can be understood on its own, and in the order in which they are to be done. Answer with a JSON list of texts and nothing else; an empty list when the task can be answered at once.`,
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
      duty: "Answer the task from the results of the work that was done for it. Say what is missing, if anything is; do not mention the plan.",
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

  /** In a session of its own. What the user says meanwhile is heard by the steps that come after. */
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

/** Plans, carries out step by step, answers. */
export function planAndExecute(options?: PlanAndExecuteOptions): PlanAndExecute {
  return new PlanAndExecute(options);
}

function instructionsOf({ instructionsWithoutFormat }: PromptContext): string {
  const duty =
    "You carry out one step of a plan. Do this step and no other, and end with its result in words that the next steps can use.";
  return instructionsWithoutFormat === "" ? duty : `${instructionsWithoutFormat}\n\n${duty}`;
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
      const early = interruptionReason === null ? "" : ` (it ended early: ${interruptionReason})`;
      return `${index + 1}. ${step}${early}\n${result}`;
    })
    .join("\n\n");
}

function toJson({ steps, left, done }: Plan): JsonObject {
  return { steps, left, done: done.map((each) => ({ ...each })) };
}
