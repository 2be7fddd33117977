import { addUsd, type Event } from "../../../kernel/index.ts";
import { RunFold } from "../../view/run-fold.ts";
import type { RunView, TaskView } from "../../view/run-view.ts";
import { counted } from "../terminal/format.ts";
import type { Billed } from "./demo-model.ts";

/** The cost of a run according to its event log. */
export interface DemoLedger {
  readonly view: RunView;
  /** Sums of the single charges in the log. */
  readonly answered: Sum;
  readonly lost: Sum;
  readonly total: Sum;
  /** The cost that the run itself reports at its end. `null` if it has not ended. */
  readonly chargedUsd: number | null;
}

interface Sum {
  readonly calls: number;
  readonly tokens: number;
  readonly usd: number;
}

const nothing: Sum = { calls: 0, tokens: 0, usd: 0 };

/** Adds up the charges of a run's events. */
export async function ledgerOf(events: AsyncIterable<Event>): Promise<DemoLedger> {
  const fold = new RunFold();
  let answered = nothing;
  let lost = nothing;
  let chargedUsd: number | null = null;
  for await (const event of events) {
    fold.add(event);
    const isCall = event.type === "message_end" || event.type === "metered_call";
    const usage = isCall ? event.data.usage : undefined;
    if (usage !== undefined && usage !== null) {
      const { inputTokens, outputTokens, costUsd } = usage;
      answered = plus(answered, { calls: 1, tokens: inputTokens + outputTokens, usd: costUsd ?? 0 });
    }
    if (event.type === "budget_lost")
      lost = plus(lost, { calls: 1, tokens: event.data.tokens, usd: event.data.costUsd ?? 0 });
    if (event.type === "run_end") chargedUsd = event.data.costUsd;
  }
  return { view: fold.view(), answered, lost, total: plus(answered, lost), chargedUsd };
}

function plus(one: Sum, other: Sum): Sum {
  return {
    calls: one.calls + other.calls,
    tokens: one.tokens + other.tokens,
    usd: addUsd(one.usd, other.usd),
  };
}

/** Returns the ledger as lines: the agents as a tree with the cost of each, the lost cost, and the total. */
export function ledgerLines({ view, lost, total }: DemoLedger): readonly string[] {
  const root = view.tasks.at(0);
  const rule = `  ${"─".repeat(66)}`;
  return [
    row("agent", ["calls", "tokens", "spent", "budget"]),
    rule,
    ...(root === undefined ? [] : taskLines(view, root)),
    ...(lost.calls === 0 ? [] : [row("unreported (crash)", [...figures(lost), ""])]),
    rule,
    row("total", [...figures(total), capOf(root)]),
  ];
}

function taskLines(view: RunView, task: TaskView): readonly string[] {
  const { calls, tokens, costUsd, lost } = task.own;
  const own = {
    calls: calls - lost.calls,
    tokens: tokens - lost.tokens,
    usd: (costUsd ?? 0) - (lost.costUsd ?? 0),
  };
  const name = `${"  ".repeat(task.depth)}${task.agentId}`;
  const reports = [...view.tasks].filter(({ parentId }) => parentId === task.taskId);
  return [row(name, [...figures(own), capOf(task)]), ...reports.flatMap((report) => taskLines(view, report))];
}

function figures({ calls, tokens, usd }: Sum): readonly string[] {
  return [String(calls), counted(tokens), `$${usd.toFixed(6)}`];
}

function capOf(task: TaskView | undefined): string {
  const cap = task?.budget?.maxCostUsd;
  return cap == null ? "" : `$${cap.toFixed(2)}`;
}

function row(name: string, [calls = "", tokens = "", spent = "", cap = ""]: readonly string[]): string {
  return `  ${name.padEnd(26)}${calls.padStart(6)}${tokens.padStart(10)}${spent.padStart(12)}${cap.padStart(12)}`.trimEnd();
}

/**
 * Compares the provider's book with the log. Each answer must have been requested once. If a request is in the book
 * twice, the kill interrupted its first attempt, which is charged as lost. A call that was reserved but not sent
 * before the kill is also charged as lost, and is not in the book.
 */
export function compareBooks(
  billed: readonly Billed[],
  { answered, lost, total, chargedUsd }: Pick<DemoLedger, "answered" | "lost" | "total" | "chargedUsd">,
): { readonly isRight: boolean; readonly words: readonly string[] } {
  const questions = new Set(billed.map(({ agent, digest }) => `${agent} ${digest}`)).size;
  const again = billed.length - questions;
  const isRight =
    questions === answered.calls &&
    again <= lost.calls &&
    chargedUsd !== null &&
    Math.abs(chargedUsd - total.usd) < 1e-9;
  const words = isRight
    ? [
        `The provider received ${billed.length} requests for ${questions} answers; ${again} ${again === 1 ? "was" : "were"} in flight at the kill.`,
        "No answer was paid for twice.",
      ]
    : [
        `The books differ: the provider received ${billed.length} requests for ${questions} answers.`,
        `The log has ${answered.calls} answers, ${lost.calls} unreported calls and $${total.usd.toFixed(6)}; the run was charged $${chargedUsd?.toFixed(6) ?? "nothing"}.`,
      ];
  return { isRight, words };
}
