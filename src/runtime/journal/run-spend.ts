import {
  fromNanoUsd,
  rootTaskId as root,
  type Ledger,
  type RunSpend,
  type Usage,
} from "../../kernel/index.ts";

/** What a run has used. The account of the root includes those of all other tasks (B6). */
export function spendOf({ usage, ledger }: { readonly usage: Usage; readonly ledger: Ledger }): RunSpend {
  const account = ledger.accounts[root];
  const isKnown = (account?.unpriced ?? 0) === 0;
  const usd = (nanoUsd = 0): number | null => (isKnown ? fromNanoUsd(nanoUsd) : null);
  return {
    usage,
    costUsd: usd(account?.spent.nanoUsd),
    unreported: { tokens: account?.lost.tokens ?? 0, costUsd: usd(account?.lost.nanoUsd) },
    turns: account?.spent.turns ?? 0,
  };
}
