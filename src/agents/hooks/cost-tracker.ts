import {
  fromNanoUsd,
  type AgentId,
  type CostLabel,
  type CostLine,
  type UnreportedSpend,
  type RunSnapshot,
} from "../../kernel/index.ts";

/** What calls came to. `costUsd` `null`: not known, because some call in it has no known price. */
export interface Cost {
  readonly calls: number;
  /** `lost` included. */
  readonly tokens: number;
  readonly costUsd: number | null;
  /** The part that no provider reported (B3). */
  readonly lost: UnreportedSpend;
}

/**
 * What a run costs, by agent and by model. It counts nothing itself: it reads the run's ledger, inside (`new CostTracker(ctx)`) or from
 * outside (`new CostTracker({ snapshot: await run.snapshot() })`), so it is right in whichever process asks, right after a resume too.
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

  /** By `provider/modelId`. */
  byModel(): ReadonlyMap<string, Cost> {
    return this.#by(({ provider, modelId }) => `${provider}/${modelId}`);
  }

  /** By agent and model. */
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
