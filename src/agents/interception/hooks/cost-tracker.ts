import {
  Fault,
  fromNanoUsd,
  HookEvent,
  toNanoUsd,
  totalTokens,
  type AgentId,
  type CostLabel,
  type CostLine,
  type HookPayload,
  type HookSet,
  type Hooks,
  type RunId,
  type RunSnapshot,
  type RunStatus,
  type TaskId,
  type UnreportedSpend,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";

/** The cost of a set of calls. `costUsd` is `null` if the price of a call is unknown. */
export interface Cost {
  readonly calls: number;
  /** Tokens, including lost ones. */
  readonly tokens: number;
  readonly costUsd: number | null;
  /** B3: the part for which no provider reported usage. */
  readonly lost: UnreportedSpend;
}

/** What a `CostTracker` reports when a task ends. */
export interface CostReport {
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly agentId: AgentId;
  /** How the task ended. */
  readonly status: RunStatus;
  /** Cost of the task's own model calls that this process has observed, without its children's. */
  readonly cost: Cost;
}

/** Options of a `CostTracker` that watches hooks. */
export interface CostTrackerOptions {
  /** Called at `RUN_END` of each watched task. */
  readonly onReport?: (report: CostReport) => void;
}

const knownOptions = optionTable({ onReport: is.callback() } satisfies OptionKinds<CostTrackerOptions>);

/**
 * Reports the cost of model calls by agent and by model. It has one of two sources.
 *
 * - The ledger of a run, inside the run (`new CostTracker(ctx)`) or outside (`new CostTracker({ snapshot: await
 *   run.snapshot() })`). It is correct in every process, also after a resume, and includes unreported usage (B3).
 * - The hooks of one or more agents: `new CostTracker({ onReport }).watch(hooks)`, or `hooks.register(tracker)`. It
 *   adds up the usage at `LLM_END`, over all runs that this process executes, and reports each task at `RUN_END`.
 */
export class CostTracker implements HookSet {
  readonly #run: { readonly snapshot: RunSnapshot } | undefined;
  readonly #onReport: ((report: CostReport) => void) | undefined;
  /** Lines of the watched calls, by agent and model. */
  readonly #watched = new Map<string, CostLine>();
  /** Lines of the tasks that have not ended, by run and task. */
  readonly #open = new Map<string, Map<string, CostLine>>();

  constructor(source: { readonly snapshot: RunSnapshot } | CostTrackerOptions = {}) {
    if ("snapshot" in source) {
      this.#run = source;
      return;
    }
    knownOptions.read("CostTracker", source);
    this.#onReport = source.onReport;
  }

  /** Adds up the cost of the tasks that these hooks observe. The returned function stops this. */
  watch(hooks: Hooks): () => void {
    if (this.#run !== undefined)
      throw new Fault(
        "unsupported",
        "a CostTracker of a run reads its ledger and cannot watch hooks; create one with new CostTracker()",
      );
    const stops = [
      hooks.on(HookEvent.LLM_END, (payload) => this.#add(payload)),
      hooks.on(HookEvent.RUN_END, (payload) => this.#report(payload)),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }

  get total(): Cost {
    return sum(this.#lines);
  }

  byAgent(): ReadonlyMap<AgentId, Cost> {
    return this.#by(({ agentId }) => agentId);
  }

  /** The cost by `provider/modelId`. */
  byModel(): ReadonlyMap<string, Cost> {
    return this.#by(({ provider, modelId }) => `${provider}/${modelId}`);
  }

  /** The cost by agent and model. */
  lines(): readonly (CostLabel & Cost)[] {
    return this.#lines.map((line) => ({ ...line.label, ...sum([line]) }));
  }

  get #lines(): readonly CostLine[] {
    return this.#run === undefined
      ? [...this.#watched.values()]
      : Object.values(this.#run.snapshot.ledger.lines);
  }

  #add(payload: HookPayload<"llm_end">): void {
    const task = taskKey(payload);
    const own = this.#open.get(task) ?? new Map<string, CostLine>();
    this.#open.set(task, own);
    for (const lines of [this.#watched, own]) addCall(lines, payload);
  }

  #report(payload: HookPayload<"run_end">): void {
    const { runId, taskId, agentId, status } = payload;
    const lines = this.#open.get(taskKey(payload));
    this.#open.delete(taskKey(payload));
    this.#onReport?.({ runId, taskId, agentId, status, cost: sum([...(lines?.values() ?? [])]) });
  }

  #by<Key>(keyOf: (label: CostLabel) => Key): ReadonlyMap<Key, Cost> {
    const groups = Map.groupBy(this.#lines, ({ label }) => keyOf(label));
    return new Map([...groups].map(([key, lines]) => [key, sum(lines)]));
  }
}

function taskKey({ runId, taskId }: Pick<CostReport, "runId" | "taskId">): string {
  return `${runId} ${taskId}`;
}

const nothing = { tokens: 0, nanoUsd: 0, turns: 0 };

function addCall(
  lines: Map<string, CostLine>,
  { agentId, provider, modelId, usage }: HookPayload<"llm_end">,
): void {
  const key = `${agentId} ${provider}/${modelId}`;
  const label = { agentId, provider, modelId };
  const line = lines.get(key) ?? {
    label,
    calls: 0,
    lostCalls: 0,
    spent: nothing,
    lost: nothing,
    unpriced: 0,
  };
  const { costUsd } = usage;
  lines.set(key, {
    ...line,
    calls: line.calls + 1,
    spent: {
      tokens: line.spent.tokens + totalTokens(usage),
      nanoUsd: line.spent.nanoUsd + (costUsd === null ? 0 : toNanoUsd(costUsd)),
      turns: line.spent.turns + 1,
    },
    unpriced: line.unpriced + (costUsd === null ? 1 : 0),
  });
}

function sum(lines: readonly CostLine[]): Cost {
  const add = (pick: (line: CostLine) => number): number => lines.reduce((all, line) => all + pick(line), 0);
  const isKnown = lines.every(({ unpriced }) => unpriced === 0);
  const usd = (nanoUsd: number): number | null => (isKnown ? fromNanoUsd(nanoUsd) : null);
  return {
    calls: add(({ calls }) => calls),
    tokens: add(({ spent }) => spent.tokens),
    costUsd: usd(add(({ spent }) => spent.nanoUsd)),
    lost: { tokens: add(({ lost }) => lost.tokens), costUsd: usd(add(({ lost }) => lost.nanoUsd)) },
  };
}
