import {
  jsonText,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
  type Tool,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { checkArchitecture } from "../base/part-check.ts";
import { runInner } from "./inner-run.ts";
import { parseTextList } from "./list-parsing.ts";
import {
  askAnsweringRole,
  askSupportingRole,
  loadPromptContext,
  markdownSections,
  type PromptContext,
} from "../context/prompt-context.ts";
import { react, inputText } from "./react.ts";
import { architectureEvent } from "../context/role-call.ts";
import { isBlank, setAnswer } from "../base/answer-text.ts";
import { ownTool, said } from "../base/own-tool.ts";
import { appendUserMessages } from "../base/user-messages.ts";

/** Options of `planAndExecute`. */
export interface PlanAndExecuteOptions {
  /**
   * Maximum number of steps. Further steps of a longer plan are not executed; the prompt of the synthesizer lists
   * them. Default: 8.
   */
  readonly maxSteps?: number;
  /** Architecture that executes each step, with the agent's tools. Default: `react()`. */
  readonly base?: Architecture;
  /** Maximum number of turns of one step. Default: the agent's `maxTurns`. */
  readonly maxTurnsPerStep?: number;
  /**
   * Maximum number of revisions of the remaining steps. The planner revises them after a step that ended early,
   * that has no result, or that called the tool `change_plan`. With 0 the first plan is final. Default: 3.
   */
  readonly maxReplans?: number;
  /**
   * Maximum number of requests to the planner for one plan. The planner is asked again if its reply contains no
   * list of steps. Default: 3.
   */
  readonly maxPlanAttempts?: number;
}

/** A step that was executed. */
interface DoneStep {
  readonly step: string;
  readonly result: string;
  /** Why the step ended early. `null` if it did not end early. */
  readonly interruptionReason: string | null;
}

/** A plan and its progress. */
interface Plan {
  /** Number of messages in the session when the plan was made. */
  readonly from: number;
  /** All steps: first the executed ones, then the remaining ones, which a revision replaces. */
  steps: readonly string[];
  /** Steps beyond `maxSteps`, which are not executed. */
  left: readonly string[];
  readonly done: DoneStep[];
  /** Number of revisions. */
  replans: number;
  /** Messages that the user added while the plan was executed. */
  readonly userAdditions: string[];
}

const knownOptions = optionTable({
  maxSteps: is.integer({ from: 1, default: 8 }),
  base: is.any,
  maxTurnsPerStep: is.integer({ from: 1 }),
  maxReplans: is.integer({ from: 0, default: 3 }),
  maxPlanAttempts: is.integer({ from: 1, default: 3 }),
} satisfies OptionKinds<PlanAndExecuteOptions>);

/**
 * Makes a plan, executes its steps one after another and writes the answer. Each step runs in its own session,
 * which sees the task, the plan and the results so far. After a step that failed or asked for another plan, the
 * planner revises the remaining steps.
 *
 * Roles: `planner`, `executor`, `synthesizer`.
 */
export class PlanAndExecute implements Architecture {
  readonly name = "plan-and-execute";
  readonly base: Architecture;
  readonly #maxSteps: number;
  readonly #maxTurns: number | undefined;
  readonly #maxReplans: number;
  readonly #maxPlanAttempts: number;

  constructor(options: PlanAndExecuteOptions = {}) {
    const {
      maxSteps,
      base = react(),
      maxTurnsPerStep,
      maxReplans,
      maxPlanAttempts,
    } = knownOptions.read("planAndExecute()", options);
    this.base = checkArchitecture(base, "base of planAndExecute()");
    this.#maxReplans = maxReplans;
    this.#maxPlanAttempts = maxPlanAttempts;
    this.#maxSteps = maxSteps;
    this.#maxTurns = maxTurnsPerStep;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    const from = session.messages.length;
    yield architectureEvent("plan", "planner_started");
    const reply = yield* this.#askPlanner(session, deps, promptContext, {
      roleInstructions: `You plan work that others carry out. Split the task into as few steps as possible, ${this.#maxSteps} at most. ${planRules} Reply with an empty list if the task can be answered at once.`,
      sections: { Task: prompt, Tools: toolLines(deps) },
    });
    if (reply.steps === undefined) {
      session.output = reply.text;
      session.interrupted = true;
      session.interruptionReason = "unreadable_plan";
      return;
    }
    const plan: Plan = { from, steps: [], left: [], done: [], replans: 0, userAdditions: [] };
    this.#setRemaining(session, plan, reply.steps);
    yield plan.steps.length === 0
      ? architectureEvent("plan", "empty_plan")
      : architectureEvent("plan", "created", { steps: plan.steps, left: plan.left });
    while (plan.done.length < plan.steps.length) {
      const reason = yield* this.#carryOut(session, deps, promptContext, plan);
      if (reason !== undefined && plan.replans < this.#maxReplans && plan.done.length < this.#maxSteps)
        yield* this.#replan(session, deps, promptContext, plan, reason);
    }
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
    yield architectureEvent("plan", "completed", { steps: plan.done.length });
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.base.declaredWorkers();
  }

  /**
   * Asks the planner for a list of steps. If the reply contains no list, asks again and includes that reply.
   * `steps` is `undefined` if no reply contains a list.
   */
  async *#askPlanner(
    session: AgentSession,
    deps: Dependencies,
    promptContext: PromptContext,
    { roleInstructions, sections }: PlannerRequest,
  ): AsyncGenerator<
    EmittableEvent,
    { readonly text: string; readonly steps: readonly string[] | undefined }
  > {
    let text = "";
    for (let attempt = 1; attempt <= this.#maxPlanAttempts; attempt++) {
      deps.ctx.check();
      const rejected = attempt === 1 ? {} : { "Your last reply, which contains no list": text || "(empty)" };
      text = await askSupportingRole(session, deps, promptContext, {
        role: "planner",
        roleInstructions,
        prompt: markdownSections({ ...sections, ...rejected }),
      });
      const steps = parseTextList(text);
      if (steps !== undefined) return { text, steps };
      yield architectureEvent("plan", "unreadable", { attempt, reply: text });
    }
    return { text, steps: undefined };
  }

  /** Replaces the remaining steps of a plan. If no reply of the planner can be read, the plan does not change. */
  async *#replan(
    session: AgentSession,
    deps: Dependencies,
    promptContext: PromptContext,
    plan: Plan,
    reason: string,
  ): AsyncGenerator<EmittableEvent, void> {
    plan.replans++;
    yield architectureEvent("plan", "replan_started", { after: plan.done.length, reason });
    const { steps } = yield* this.#askPlanner(session, deps, promptContext, {
      roleInstructions: `You revise a plan that others carry out. Some of its steps are done, and the latest one gives a reason to change what remains. List only the steps that remain to be done now, as few as possible, ${this.#maxSteps - plan.done.length} at most. ${planRules} Do not repeat what is done, except for a step that must be tried in another way. Reply with an empty list if the results suffice to answer the task.`,
      sections: {
        Task: promptContext.prompt,
        Tools: toolLines(deps),
        "The user added": plan.userAdditions.join("\n"),
        Results: resultsOf(plan),
        "Remaining steps": [...plan.steps.slice(plan.done.length), ...plan.left].join("\n"),
        "Reason to change the plan": reason,
      },
    });
    if (steps !== undefined) this.#setRemaining(session, plan, steps);
    yield architectureEvent("plan", steps === undefined ? "replan_failed" : "replanned", {
      steps: plan.steps.slice(plan.done.length),
      left: plan.left,
    });
  }

  #setRemaining(session: AgentSession, plan: Plan, remaining: readonly string[]): void {
    const room = this.#maxSteps - plan.done.length;
    plan.steps = [...plan.done.map(({ step }) => step), ...remaining.slice(0, room)];
    plan.left = remaining.slice(room);
    session.metadata["plan"] = toJson(plan);
  }

  /**
   * Executes the next step in its own session. Messages that the user adds during the step are shown to the
   * following steps. Returns the reason to change the plan, if there is one.
   */
  async *#carryOut(
    session: AgentSession,
    deps: Dependencies,
    promptContext: PromptContext,
    plan: Plan,
  ): AsyncGenerator<EmittableEvent, string | undefined> {
    const { ctx, steering } = deps;
    const number = plan.done.length + 1;
    const step = plan.steps[number - 1] ?? "";
    let request: string | undefined;
    const equipped = deps
      .scopeForWorker("executor")
      .withMaxTurns(this.#maxTurns ?? deps.maxTurns)
      .withExtraTools(this.#maxReplans === 0 ? [] : [changePlanTool], ({ isError, metadata }) => {
        if (!isError) request ??= jsonText(metadata?.[reasonKey] ?? "");
      });
    ctx.check();
    yield architectureEvent("plan", "step_started", { number, step });
    const inner = deps.freshSession(`step_${number}`, instructionsOf(promptContext));
    inner.attachments = promptContext.attachments;
    yield* runInner(session, {
      base: this.base,
      inner,
      deps: equipped,
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
    appendUserMessages(session, ctx, { ...promptContext, from: plan.from }, inputs);
    plan.userAdditions.push(...inputs.map(inputText));
    return request ?? failureOf(done);
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

function toJson({ steps, left, done, replans }: Plan): JsonObject {
  return { steps, left, done: done.map((each) => ({ ...each })), replans };
}

/** What the planner is asked. */
interface PlannerRequest {
  readonly roleInstructions: string;
  readonly sections: Readonly<Record<string, string>>;
}

const planRules =
  "Each step must be understandable on its own, and the steps must be in the order in which they are to be done. Reply with a JSON list of texts and nothing else.";

/** Returns why a step counts as failed; `undefined` if it has a result. */
function failureOf({ result, interruptionReason }: DoneStep): string | undefined {
  if (interruptionReason !== null) return `The step ended early: ${interruptionReason}.`;
  return isBlank(result) ? "The step has no result." : undefined;
}

/** Metadata key in a result of `change_plan` for the reason to change the plan. Stored in journals. */
const reasonKey = "changePlan";

/** The tool with which a step asks for another plan. */
const changePlanTool: Tool = ownTool({
  name: "change_plan",
  description:
    "Requests a revision of the remaining steps of the plan. Call it only if this step cannot be done, or if its result makes a later step wrong or unnecessary. Then end the step with its result.",
  input: { reason: { description: "What the planner needs to know to change the plan" } },
  execute: ({ reason }) => said("the plan is revised after this step", { [reasonKey]: reason }),
});
