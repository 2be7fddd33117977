import {
  fromNanoUsd,
  type AgentId,
  type CostLabel,
  type CostLine,
  type UnreportedSpend,
  type RunSnapshot,
} from "../../kernel/index.ts";

/** The cost of a set of calls. `costUsd` is `null` if the price of a call is unknown. */
export interface Cost {
  readonly calls: number;
  /** Tokens, including lost ones. */
  readonly tokens: number;
  readonly costUsd: number | null;
  /** B3: the part for which no provider reported usage. */
  readonly lost: UnreportedSpend;
}

/**
 * The cost of a run by agent and by model. It reads the run's ledger, inside the run (`new CostTracker(ctx)`) or
 * outside (`new CostTracker({ snapshot: await run.snapshot() })`), so it is correct in every process, also after a
 * resume.
 */
export class CostTracker {
  readonly #run: { readonly snapshot: RunSnapshot };

  constructor(run: { readonly snapshot: RunSnapshot }) {
    this.#run = run;
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
    return Object.values(this.#run.snapshot.ledger.lines);
  }

  #by<Key>(keyOf: (label: CostLabel) => Key): ReadonlyMap<Key, Cost> {
    const groups = Map.groupBy(this.#lines, ({ label }) => keyOf(label));
    return new Map([...groups].map(([key, lines]) => [key, sum(lines)]));
  }
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
