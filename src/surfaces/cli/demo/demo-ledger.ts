import type { Event, RunId, Store } from "../../../kernel/index.ts";
import type { Billed } from "./demo-model.ts";

interface Line {
  calls: number;
  tokens: number;
  usd: number;
}

/** The cost of a run by agent, according to its event log. */
export interface DemoLedger {
  readonly byAgent: ReadonlyMap<string, Readonly<Line>>;
  readonly lost: Readonly<Line>;
  readonly total: Readonly<Line>;
  /** The cost that the run itself reports. */
  readonly chargedUsd: number | null;
}

export async function ledgerOf({ events }: Store, runId: RunId): Promise<DemoLedger> {
  const byAgent = new Map<string, Line>();
  const lost: Line = { calls: 0, tokens: 0, usd: 0 };
  let chargedUsd: number | null = null;
  for await (const event of events.read(runId)) {
    if (event.type === "message_end") add(byAgent, event);
    if (event.type === "run_end") chargedUsd = event.data.costUsd;
    if (event.type === "budget_lost") {
      lost.calls += 1;
      lost.tokens += event.data.tokens;
      lost.usd += event.data.costUsd ?? 0;
    }
  }
  const total = [...byAgent.values(), lost].reduce<Line>(
    (sum, { calls, tokens, usd }) => ({
      calls: sum.calls + calls,
      tokens: sum.tokens + tokens,
      usd: sum.usd + usd,
    }),
    { calls: 0, tokens: 0, usd: 0 },
  );
  return { byAgent, lost, total, chargedUsd };
}

function add(byAgent: Map<string, Line>, { agentId, data: { usage } }: Event<"message_end">): void {
  if (usage === undefined) return;
  const line = byAgent.get(agentId) ?? { calls: 0, tokens: 0, usd: 0 };
  line.calls += 1;
  line.tokens += usage.inputTokens + usage.outputTokens;
  line.usd += usage.costUsd ?? 0;
  byAgent.set(agentId, line);
}

export function ledgerLines({ byAgent, lost, total }: DemoLedger): readonly string[] {
  return [
    `  ${"".padEnd(10)}${"calls".padStart(6)}${"tokens".padStart(10)}${"USD".padStart(12)}`,
    ...[...byAgent].map(([name, line]) => row(name, line)),
    ...(lost.calls === 0
      ? []
      : [row("lost", lost, "   in flight when the process was killed: charged at its bound")]),
    row("total", total),
  ];
}

function row(name: string, { calls, tokens, usd }: Readonly<Line>, note = ""): string {
  return `  ${name.padEnd(10)}${String(calls).padStart(6)}${tokens.toLocaleString("en").padStart(10)}${usd.toFixed(6).padStart(12)}${note}`;
}

/**
 * Compares the provider's book with the log. Every answer was requested once; a repeated request was in flight at the
 * kill and is charged as lost. A call that was reserved but not sent before the kill is charged as lost, too, and is
 * not in the book.
 */
export function compareBooks(
  billed: readonly Billed[],
  { total, lost, chargedUsd }: DemoLedger,
): { readonly isRight: boolean; readonly words: string } {
  const answered = total.calls - lost.calls;
  const questions = new Set(billed.map(({ role, digest }) => `${role} ${digest}`)).size;
  const again = billed.length - questions;
  const isRight =
    questions === answered &&
    again <= lost.calls &&
    chargedUsd !== null &&
    Math.abs(chargedUsd - total.usd) < 1e-9;
  const flight =
    again === 0 ? "none was in flight at the kill" : `${again} in flight at the kill, asked again`;
  const words = isRight
    ? `The provider's own book says ${billed.length} calls: ${answered} answered and recorded, ${flight}. No answer was paid for twice.`
    : `The books do not agree: the provider saw ${billed.length} calls, ${again} of them repeated; the log has ${answered} answers and ${lost.calls} lost.`;
  return { isRight, words };
}
