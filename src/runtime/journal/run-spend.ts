import {
  fromNanoUsd,
  likelyNanoUsd,
  nothing,
  rootTaskId as root,
  type Ledger,
  type RunSpend,
  type Spend,
  type Usage,
} from "../../kernel/index.ts";

/**
 * Returns what a run has used. The account of the root includes those of all other tasks (B6). The amounts that
 * started runs have spent count against its budget, but are reported by those runs.
 */
export function spendOf({ usage, ledger }: { readonly usage: Usage; readonly ledger: Ledger }): RunSpend {
  const { spent, lost, unpriced } = ledger.accounts[root] ?? { spent: nothing, lost: nothing, unpriced: 0 };
  const own = { ...spent, nanoUsd: spent.nanoUsd - ledger.elsewhere.nanoUsd };
  const isKnown = unpriced === 0;
  const usd = (nanoUsd: number | null): number | null =>
    isKnown && nanoUsd !== null ? fromNanoUsd(nanoUsd) : null;
  const unreported = { tokens: lost.tokens, costUsd: usd(lost.nanoUsd) };
  return {
    usage,
    costUsd: usd(own.nanoUsd),
    unreported:
      lost.tokens === 0 ? unreported : { ...unreported, likelyUsd: usd(likelyOf(ledger, own, lost)) },
    turns: spent.turns - ledger.elsewhere.turns,
  };
}

function likelyOf({ lines }: Ledger, spent: Spend, lost: Spend): number | null {
  let calls = 0;
  let lostCalls = 0;
  for (const line of Object.values(lines)) {
    calls += line.calls;
    lostCalls += line.lostCalls;
  }
  const reported = { calls: calls - lostCalls, nanoUsd: spent.nanoUsd - lost.nanoUsd };
  return likelyNanoUsd(reported, { calls: lostCalls, nanoUsd: lost.nanoUsd });
}
