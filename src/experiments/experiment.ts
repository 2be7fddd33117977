import { defaultRuntime, openRuntime } from "../assembly/open-runtime.ts";
import type { WorkflowScope } from "../assembly/workflow-context.ts";
import { workflow, type Workflow } from "../assembly/workflow.ts";
import { sha256Hex, type RuntimeOptions } from "../runtime/index.ts";
import {
  executionBudget,
  FatalError,
  Fault,
  is,
  optionTable,
  readProperty,
  rootTaskId,
  startKinds,
  type ExecutionBudget,
  type HostedAgent,
  type HostedWorkflow,
  type JsonValue,
  type OptionKinds,
  type RunContext,
  type Runtime,
  type StartOptions,
  type TaskInbox,
  type WorkflowContext,
} from "../kernel/index.ts";
import { CaseList, modelModes, toolModes, type CaseSource } from "./cases.ts";
import type { ExperimentCase, ExperimentResult, ModelMode, ScoreGate, Scorer, ToolMode } from "./contract.ts";
import type { ForkBudget } from "./fork-budget.ts";
import { isStored, type StoredRuns } from "./forks.ts";
import type { ReplayModes } from "./recording/replayed-calls.ts";
import { replays } from "./recording/replays.ts";
import { agentsOf, isDurable, readScorers, type NamedScorer } from "./score.ts";
import { runTrial, type Trial } from "./trial.ts";
import { headName, readExperiment, type ExperimentHead } from "./trial-log.ts";
import { sharedIds, storedRunsOf, variantsOf } from "./variants.ts";

/** Options of `experiment()`. */
export interface ExperimentOptions {
  /** Name of the experiment. It is the id of its workflow, by which workers find its runs. */
  readonly name: string;
  /** The agent that is evaluated. Either `agent` or `variants` is required. */
  readonly agent?: HostedAgent;
  /**
   * The compared agents, by name. If two agents have the same name and the class `Agent`, the name of the variant
   * becomes their key.
   */
  readonly variants?: { readonly [variant: string]: HostedAgent };
  /** The cases: a list, or a function such as `jsonLines("./cases.jsonl")`. Either `cases` or `from` is required. */
  readonly cases?: CaseSource;
  /**
   * Stored runs of `agent` as cases, and changes of them as variants: `from: runs({ runtime, runs, forks })`. The
   * forks are separate runs. They share the `budget` with the judges.
   */
  readonly from?: StoredRuns;
  /** The scorers of the answers. A function scorer has the name of the function. Names must be unique. */
  readonly scorers: readonly Scorer[];
  /** How often each case is given to each variant. Default: 1. */
  readonly trials?: number;
  /** Budget of all trials and judges together. If absent, the experiment has no limit. */
  readonly budget?: Partial<ExecutionBudget>;
  /** Number of trials that are in progress at the same time. Default: 4. */
  readonly seats?: number;
  /** Conditions under which the experiment passes, by name of the scorer. Default: none. */
  readonly gates?: { readonly [scorer: string]: ScoreGate };
  /**
   * Whether the tool calls of cases with a recording are answered from it: `recorded` ends the trial at a call that was not
   * recorded, `recorded-or-live` executes that call, and `live` executes all. Default: `recorded`.
   */
  readonly tools?: ToolMode;
  /**
   * Whether the model calls of cases with a recording are answered from it. `recorded` ends the trial at the first request
   * that differs from the recorded one, and costs nothing. Default: `live`.
   */
  readonly model?: ModelMode;
}

/** The part of an experiment that a run executes. */
export interface ExperimentInput {
  /** Ids of the cases. Default: all cases. */
  readonly cases?: readonly string[];
  /** Selects the cases whose id contains this text. */
  readonly filter?: string;
  /** Selects the cases with at least one of these tags. */
  readonly tags?: readonly string[];
  /** Names of the variants. Default: all variants. */
  readonly variants?: readonly string[];
  /** How often each case is given to each variant. Default: `trials` of the experiment. */
  readonly trials?: number;
  /** Number of trials that are in progress at the same time. Default: `seats` of the experiment. */
  readonly seats?: number;
  /**
   * Whether scorers are forbidden to send HTTP requests that no budget counts. Default: `true` if the experiment,
   * or the call of `run`, has a budget.
   */
  readonly meteredScorers?: boolean;
  /**
   * Whether cases with a recording are answered only from it, regardless of the modes of the experiment and of the
   * case. Default: `false`.
   */
  readonly offline?: boolean;
}

/** The output of an experiment's run. The results of the trials are in its log. */
export interface ExperimentOutput {
  /** Number of trials that have ended. */
  readonly trials: number;
}

/** Options of `Experiment.run`. */
export interface RunExperimentOptions extends StartOptions, ExperimentInput {
  /** The runtime on which the run starts. Default: a runtime in this process that stores everything in memory. */
  readonly runtime?: Runtime;
  /** Store on which a runtime is opened for this run. Alternative to `runtime`. */
  readonly store?: NonNullable<RuntimeOptions["store"]>;
}

const gateTable = optionTable({
  mean: is.number({ from: 0, to: 1 }),
  maxDrop: is.number({ from: 0, to: 1 }),
} satisfies OptionKinds<ScoreGate>);

const experimentTable = optionTable({
  name: is.text({ required: true, empty: false }),
  agent: is.any,
  variants: is.named("agents", "variants: { base: agent, cheap: agent.with({ model }) }"),
  cases: is.any,
  from: is.any,
  scorers: is.any,
  trials: is.integer({ from: 1, to: 1_000, default: 1 }),
  budget: is.checkedBy(executionBudget),
  seats: is.integer({ from: 1, to: 1_000, default: 4 }),
  gates: is.named("gates", "gates: { exactMatch: { mean: 0.9 } }"),
  tools: is.choice(toolModes, { default: "recorded" }),
  model: is.choice(modelModes, { default: "live" }),
} satisfies OptionKinds<ExperimentOptions>);

const inputKinds = {
  cases: is.list({ of: is.text({ empty: false }) }),
  filter: is.text(),
  tags: is.list({ of: is.text({ empty: false }) }),
  variants: is.list({ of: is.text({ empty: false }) }),
  trials: is.integer({ from: 1, to: 1_000 }),
  seats: is.integer({ from: 1, to: 1_000 }),
  meteredScorers: is.boolean(),
  offline: is.boolean(),
} satisfies OptionKinds<ExperimentInput>;

const inputTable = optionTable(inputKinds);
const runTable = optionTable({
  ...startKinds,
  ...inputKinds,
  runtime: is.any,
  store: is.any,
} satisfies OptionKinds<RunExperimentOptions>);

/** Minimum number of trials in one history of the run. Ended trials of earlier histories need no memory. */
const smallestBatch = 64;

/** The plan of a run. It is recorded. Every process that continues the run must calculate the same plan. */
interface Plan extends Pick<ExperimentHead, "variants" | "scorers" | "trials" | "expectedTrials"> {
  /** Digest of all cases of the experiment. */
  readonly digest: string;
}

/** The input of one history of the run. */
interface HistoryInput extends ExperimentInput {
  /** Number of trials in the previous histories. */
  readonly offset?: number;
  /** The plan that the first history has recorded. */
  readonly plan?: Plan;
  /** The stored runs that the first history has chosen. */
  readonly runs?: readonly string[];
}

/** The variants and the cases of a run. */
interface Work {
  readonly plan: Plan;
  readonly cases: readonly ExperimentCase[];
}

/**
 * An experiment: cases, agents that answer them, and scorers. `experiment()` creates one. It is a workflow: `runtime.start(experiment,
 * { tags: ["smoke"] })` starts a run, and any worker that hosts the experiment continues it after a crash.
 */
export class Experiment implements HostedWorkflow<ExperimentInput, ExperimentOutput> {
  declare readonly contextType?: unknown;
  declare readonly types?: {
    readonly input: (input: ExperimentInput) => void;
    readonly output: ExperimentOutput;
  };
  readonly runKind = "workflow";
  readonly id: HostedAgent["id"];
  readonly name: string;
  readonly description: string;
  readonly subAgents: readonly HostedAgent[];
  declare readonly budget?: Partial<ExecutionBudget>;
  declare readonly spawnBudget?: NonNullable<HostedAgent["spawnBudget"]>;
  /** The agents that are compared, by name. */
  readonly variants: ReadonlyMap<string, HostedAgent>;
  readonly gates: { readonly [scorer: string]: ScoreGate };
  readonly trials: number;
  readonly seats: number;
  readonly #options: ExperimentOptions;
  readonly #scorers: readonly NamedScorer[];
  readonly #cases: CaseList;
  readonly #from: StoredRuns | undefined;
  readonly #modes: ReplayModes;
  readonly #mayReplay: boolean;
  /** Ids of agents that are both used by a variant and called by scorers. */
  readonly #shared: readonly string[];
  readonly #workflow: Workflow<JsonValue, ExperimentOutput>;

  /** Use `experiment()`. */
  constructor(options: ExperimentOptions) {
    const named: unknown = readProperty(options, "name");
    const owner = typeof named === "string" ? `experiment ${named}` : "experiment()";
    const { name, trials, seats, budget, gates = {}, tools, model } = experimentTable.read(owner, options);
    this.#options = options;
    this.name = name;
    this.description = `Experiment ${name}`;
    this.trials = trials;
    this.seats = seats;
    this.#from = storedRunsOf(owner, options);
    this.variants = variantsOf(owner, options);
    this.#scorers = readScorers(owner, options.scorers);
    this.gates = readGates(owner, gates, this.#scorers);
    this.#cases = new CaseList(owner, this.#from === undefined ? (options.cases as CaseSource) : noCases);
    this.#modes = { tools, model };
    const judges = agentsOf(this.#scorers);
    this.#shared = sharedIds([...this.variants.values()], judges);
    // A judge of the same id would answer as a variant.
    this.#mayReplay = mayReplay(options.cases ?? []) && this.#shared.length === 0;
    const variants = [...this.variants.values()];
    const answering = this.#mayReplay ? replays.agentsOf(name, variants) : variants;
    this.subAgents = [...new Set([...answering, ...judges])];
    if (budget !== undefined) this.budget = budget;
    // Each trial may need seats for an agent below its own, and for a judge.
    if (seats > 12) this.spawnBudget = { maxAgents: 4 * seats + 2 };
    this.#workflow = workflow<ExperimentOutput>(name, (ctx, input) =>
      this.#execute(ctx as WorkflowScope<never>, input as HistoryInput),
    );
    this.id = this.#workflow.id;
  }

  /** Names of the scorers, in their order. */
  get scorers(): readonly string[] {
    return this.#scorers.map(({ name }) => name);
  }

  /**
   * Returns an experiment `NAME.forks` with the scorers of this experiment, whose cases are stored runs of a
   * variant. It has no gates, because the gates apply to the cases of this experiment. Default variant: the first
   * one.
   */
  withRuns(from: StoredRuns, variant?: string): Experiment {
    const { cases: _cases, variants: _variants, gates: _gates, ...options } = this.#options;
    const names = [...this.variants.keys()];
    const agent = this.variants.get(variant ?? (names[0] as string));
    if (agent !== undefined) return new Experiment({ ...options, name: `${this.name}.forks`, agent, from });
    throw new Fault(
      "invalid_argument",
      `unknown variant ${JSON.stringify(variant)} of experiment ${this.name}: expected one of ${names.join(", ")}`,
    );
  }

  readInput(input: JsonValue): JsonValue {
    const owner = `the input of experiment ${this.name}`;
    const { variants } = inputTable.read(owner, (input ?? {}) as ExperimentInput);
    for (const each of variants ?? [])
      if (!this.variants.has(each))
        throw new Fault(
          "invalid_argument",
          `unknown variant ${JSON.stringify(each)} of ${owner}: expected one of ${[...this.variants.keys()].join(", ")}`,
        );
    return input ?? {};
  }

  /**
   * Reads the cases and returns the number of trials that an input selects. Throws `invalid_argument` if the cases
   * are invalid, or none is selected. A run with this input would end with the same error.
   */
  async countTrials(input: ExperimentInput = {}): Promise<number> {
    this.readInput(input as JsonValue);
    const { trials = this.trials, variants = [...this.variants.keys()] } = input;
    try {
      const { cases } = await this.#readCases(await this.#from?.runIds(this.#agentId));
      return selectedCases(this.name, cases, input).length * variants.length * trials;
    } catch (error) {
      throw new Fault("invalid_argument", Fault.from(error).message, { cause: error });
    }
  }

  /** Executes a run. Only a worker calls it. */
  run(ctx: RunContext, inbox: TaskInbox): Promise<JsonValue>;
  /** Starts a run and returns its results when it has ended, regardless of its status. */
  run(options?: RunExperimentOptions): Promise<ExperimentResult>;
  run(first: RunContext | RunExperimentOptions = {}, inbox?: TaskInbox): Promise<unknown> {
    return inbox === undefined
      ? this.#call(first as RunExperimentOptions)
      : this.#workflow.run(first as RunContext, inbox);
  }

  async #call(options: RunExperimentOptions): Promise<ExperimentResult> {
    const owner = `run() of experiment ${this.name}`;
    runTable.read(owner, options);
    const { runtime, store, cases, filter, tags, variants, trials, seats, offline, ...others } = options;
    const { meteredScorers = others.budget === undefined ? undefined : true, ...starting } = others;
    if (runtime !== undefined && store !== undefined)
      throw new Fault("invalid_argument", `${owner} has runtime and store: pass one of them`);
    const given = { cases, filter, tags, variants, trials, seats, meteredScorers, offline };
    const input = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    if (store === undefined) return this.#start(runtime ?? (await defaultRuntime()), input, starting);
    const opened = await openRuntime({ store });
    try {
      return await this.#start(opened, input, starting);
    } finally {
      await opened.close();
    }
  }

  async #start(runtime: Runtime, input: ExperimentInput, options: StartOptions): Promise<ExperimentResult> {
    const run = await runtime.start(this, input, options);
    await run.result();
    return readExperiment(run);
  }

  /** Executes one history of the run: a batch of trials. */
  async #execute(ctx: WorkflowScope<never>, input: HistoryInput): Promise<ExperimentOutput> {
    const { offset = 0, seats = this.seats, meteredScorers = this.budget !== undefined } = input;
    const runs = this.#from === undefined ? undefined : await this.#chosenRuns(ctx, this.#from, input);
    const { plan, cases } = await this.#workOf(ctx, { ...input, ...(runs !== undefined && { runs }) });
    // The variants of a case are in one batch, because scorers may compare them.
    const perCase = plan.variants.length * plan.trials;
    const size = Math.ceil(Math.max(smallestBatch, 4 * seats) / perCase) * perCase;
    const end = Math.min(plan.expectedTrials, offset + size);
    const answers = Array.from({ length: end - offset }, () => Promise.withResolvers<JsonValue>());
    for (const { promise } of answers) promise.catch(() => undefined);
    const forks = this.#from && { from: this.#from, budget: this.#forkBudget(ctx, this.#from, plan, cases) };
    const trials = answers.map(({ resolve }, index): Trial => {
      const rivals = rivalsOf(plan, index, (at) => answers[at]?.promise);
      return {
        ...this.#asked(plan, cases, { index: offset + index, isOffline: input.offline === true }),
        rivals,
        ...(forks && { forks }),
        hasBudget: meteredScorers,
        onAnswer: resolve,
      };
    });
    const perform = async (trial: Trial, branch: WorkflowContext, index: number): Promise<null> => {
      try {
        return await runTrial(branch as WorkflowScope<never>, trial, this.#scorers);
      } catch (error) {
        // A trial that the budget has ended has no answer. The trials that compare with it run after a top-up as well.
        answers[index]?.reject(error);
        throw error;
      }
    };
    const items = await ctx.map(trials, perform, { concurrency: seats });
    // The reason itself, because a resumption then performs the failed trials again, and no other.
    for (const item of items) if (item.status === "rejected") throw item.reason;
    if (end < plan.expectedTrials)
      return ctx.continueAsNew({
        ...input,
        offset: end,
        plan,
        ...(runs !== undefined && { runs }),
      } as unknown as JsonValue);
    return { trials: end };
  }

  #asked(
    { variants, trials }: Plan,
    cases: readonly ExperimentCase[],
    { index, isOffline }: { readonly index: number; readonly isOffline: boolean },
  ): Pick<Trial, "asked" | "variant" | "agent" | "number" | "replay"> {
    const perCase = variants.length * trials;
    const variant = variants[Math.floor((index % perCase) / trials)] as string;
    const asked = cases[Math.floor(index / perCase)] as ExperimentCase;
    const own = { tools: asked.tools ?? this.#modes.tools, model: asked.model ?? this.#modes.model };
    const replay = isOffline ? ({ tools: "recorded", model: "recorded" } as const) : own;
    if (asked.recording !== null && this.#shared.length > 0)
      throw new FatalError(
        `case ${asked.id} of experiment ${this.name} has a recording, and ${this.#shared.join(", ")} answers cases and is called by a scorer: give the agent of the scorer a key of its own, agent.with({ key: "judge" })`,
      );
    return {
      asked,
      variant,
      agent: this.variants.get(variant) as HostedAgent,
      number: (index % trials) + 1,
      ...(this.#mayReplay && { replay }),
    };
  }

  /** Returns the budget of the run, which its forks and judges share. */
  #forkBudget(
    { runContext, runId: experimentRun }: WorkflowScope<never>,
    from: StoredRuns,
    { variants, trials, expectedTrials }: Plan,
    cases: readonly ExperimentCase[],
  ): ForkBudget {
    const forked = variants.filter((variant) => !isStored(variant));
    const hasJudges = this.#scorers.some(({ scorer }) => isDurable(scorer));
    return from.budget({
      account: () => runContext.snapshot.ledger.accounts[rootTaskId],
      parts: hasJudges ? expectedTrials : cases.length * forked.length * trials,
      hasJudges,
      *trials() {
        for (const { id: origin } of cases)
          for (const variant of forked)
            for (let number = 1; number <= trials; number++) yield { experimentRun, origin, variant, number };
      },
    });
  }

  get #agentId(): string {
    return ([...this.variants.values()][0] as HostedAgent).id;
  }

  /**
   * Returns the work of the run. The first history records the plan, and every process compares it with its own
   * plan.
   */
  async #workOf(ctx: WorkflowScope<never>, input: HistoryInput): Promise<Work> {
    const { cases: all, digest } = await this.#readCases(input.runs);
    const cases = selectedCases(this.name, all, input);
    const { trials = this.trials, variants = [...this.variants.keys()] } = input;
    const expectedTrials = cases.length * variants.length * trials;
    const own: Plan = { variants, scorers: this.scorers, trials, expectedTrials, digest };
    const plan = input.plan ?? (await this.#record(ctx, own));
    const changed = (Object.keys(own) as (keyof Plan)[]).filter(
      (key) => JSON.stringify(own[key]) !== JSON.stringify(plan[key]),
    );
    if (changed.length > 0)
      throw changedPlan({ name: this.name, isForked: this.#from !== undefined }, ctx.runId, changed);
    return { plan, cases };
  }

  /**
   * Returns the chosen runs. They are chosen only once and recorded, because the filter may select other runs
   * later.
   */
  #chosenRuns(
    ctx: WorkflowScope<never>,
    from: StoredRuns,
    { runs }: HistoryInput,
  ): Promise<readonly string[]> {
    return runs === undefined
      ? ctx.step("runs", () => from.runIds(this.#agentId), { retry: false })
      : Promise.resolve(runs);
  }

  async #readCases(runs: readonly string[] | undefined): ReturnType<CaseList["all"]> {
    try {
      const from = this.#from;
      if (from !== undefined) {
        const list = new CaseList(`experiment ${this.name}`, () => from.cases(this.#agentId, runs ?? []));
        const { cases, digest } = await list.all();
        return { cases, digest: sha256Hex(`${digest} ${from.signature}`) };
      }
      return await this.#cases.all();
    } catch (error) {
      throw new FatalError(Fault.from(error).message, { cause: error });
    }
  }

  async #record(ctx: WorkflowScope<never>, plan: Plan): Promise<Plan> {
    const { digest: _digest, ...own } = plan;
    const head: ExperimentHead = { name: this.name, ...own, gates: this.gates };
    ctx.publish(headName, head);
    return ctx.step("plan", () => plan, { retry: false });
  }
}

/**
 * Declares an experiment: cases that agents answer and scorers score. A run of the experiment is an ordinary
 * durable run: it has one budget, survives crashes, and repeats no recorded answers and scores.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { experiment } from "reeve/experiments";
 * import { scriptedModel } from "reeve/testing";
 *
 * const clerk = new Agent({ name: "clerk", model: scriptedModel(["Paris"]) });
 *
 * const capitals = experiment({
 *   name: "capitals",
 *   agent: clerk,
 *   cases: [{ id: "france", input: "What is the capital of France?", expected: "Paris" }],
 *   scorers: [function exact({ output, expected }) { return output === expected; }],
 *   gates: { exact: { mean: 0.9 } },
 * });
 *
 * const { results } = await capitals.run();
 * console.log(results[0]?.scores["exact"]?.score);
 * ```
 */
export function experiment(options: ExperimentOptions): Experiment {
  return new Experiment(options);
}

/** Whether a case may have a recording. `true` for a function, because its cases are not known yet. */
function mayReplay(cases: CaseSource): boolean {
  return typeof cases === "function" || cases.some(({ recording }) => recording !== undefined);
}

/**
 * Returns the answers of the previous variants in a trial. `index` is the index of the trial in its batch, as for
 * `answerAt`.
 */
function rivalsOf(
  { variants, trials }: Plan,
  index: number,
  answerAt: (index: number) => Promise<JsonValue> | undefined,
): Trial["rivals"] {
  const place = Math.floor((index % (variants.length * trials)) / trials);
  const before = variants.slice(0, place).flatMap((variant, at) => {
    const answer = answerAt(index - (place - at) * trials);
    return answer === undefined ? [] : [[variant, answer] as const];
  });
  return Object.fromEntries(before);
}

async function noCases(): Promise<never> {
  throw new Fault("internal", "the cases of this experiment are stored runs");
}

function readGates(
  owner: string,
  gates: object,
  scorers: readonly NamedScorer[],
): { readonly [scorer: string]: ScoreGate } {
  const names = scorers.map(({ name }) => name);
  for (const [name, gate] of Object.entries(gates)) {
    if (!names.includes(name))
      throw new Fault(
        "invalid_argument",
        `gate ${JSON.stringify(name)} of ${owner} names no scorer: expected one of ${names.join(", ")}`,
      );
    const { mean, maxDrop } = gateTable.read(`gate ${name} of ${owner}`, gate as ScoreGate);
    if (mean === undefined && maxDrop === undefined)
      throw new Fault(
        "invalid_argument",
        `gate ${name} of ${owner} is empty: use { mean: 0.9 }, the lowest mean, or { maxDrop: 0.05 }`,
      );
  }
  return gates as { readonly [scorer: string]: ScoreGate };
}

function selectedCases(
  name: string,
  all: readonly ExperimentCase[],
  { cases: ids, filter, tags }: ExperimentInput,
): readonly ExperimentCase[] {
  const wanted = ids === undefined ? undefined : new Set(ids);
  const unknown = ids?.filter((id) => !all.some((each) => each.id === id)) ?? [];
  if (unknown.length > 0)
    throw new FatalError(
      `experiment ${name} has no case ${unknown.map((id) => JSON.stringify(id)).join(", ")}: check cases of the input`,
    );
  const selected = all.filter(
    (each) =>
      (wanted === undefined || wanted.has(each.id)) &&
      (filter === undefined || each.id.includes(filter)) &&
      (tags === undefined || each.tags.some((tag) => tags.includes(tag))),
  );
  if (selected.length === 0)
    throw new FatalError(
      `no case of experiment ${name} is selected: the input has ${JSON.stringify({ cases: ids, filter, tags })}, and the experiment has ${all.length} cases`,
    );
  return selected;
}

function changedPlan(
  { name, isForked }: { readonly name: string; readonly isForked: boolean },
  runId: string,
  changed: readonly (keyof Plan)[],
): FatalError {
  const words: Readonly<Record<keyof Plan, string>> = {
    digest: isForked ? "the stored runs, or the changes of their forks" : "the cases",
    expectedTrials: "the number of trials",
    scorers: "the scorers",
    trials: "trials",
    variants: "the variants",
  };
  const what = changed.map((key) => words[key]).join(", ");
  return new FatalError(
    `experiment ${name} has changed since ${runId} was started: ${what}; resume the run with the cases, variants and scorers that it started with, or start another run`,
  );
}
