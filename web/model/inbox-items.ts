import { argumentOf } from "../../src/surfaces/view/excerpt.ts";
import { visibleLine } from "../../src/kernel/index.ts";
import { inbox, titles, type InboxQuery } from "../api/runs-feed.ts";
import type { Approval, DeadLetter, Run } from "../api/types.ts";
import { keyOfLetter, keyOfQuestion, keyOfRun, type InboxKey } from "../../src/surfaces/view/inbox-keys.ts";
import { amountWords, lackOf } from "../../src/surfaces/view/top-up-offer.ts";
import { figures } from "./run-figures.ts";
import { endWord } from "./status.ts";
import { offerOf, questionText } from "./words/approval-words.ts";
import { shortId, usd } from "../base/format.ts";

/** One thing in the inbox. */
export type InboxItem =
  | (InboxKey & { readonly kind: "question"; readonly approval: Approval })
  | (InboxKey & { readonly kind: "stopped" | "looping"; readonly run: Run })
  | (InboxKey & { readonly kind: "letter"; readonly letter: DeadLetter });

/**
 * The items of the part of the inbox that was read: decisions, the oldest first, then the runs that stopped, the newest first,
 * then what was not delivered. `null` until the part is read.
 */
export function itemsOf(query: InboxQuery): readonly InboxItem[] | null {
  const read = inbox.value;
  if (read === null || JSON.stringify(read.query) !== JSON.stringify(query)) return null;
  const { questions, runs, letters } = read;
  return [
    ...questions.items.map((approval): InboxItem => ({
      kind: "question",
      ...keyOfQuestion(approval),
      approval,
    })),
    ...runs.items
      .map((run): InboxItem => ({
        kind: run.status === "paused" ? "looping" : "stopped",
        ...keyOfRun(run),
        run,
      }))
      .toSorted((one, other) => other.at - one.at),
    ...letters.items.map((letter): InboxItem => ({ kind: "letter", ...keyOfLetter(letter), letter })),
  ];
}

/** When a snoozed item comes back. `null` for a closed one, which comes back when it changes. */
export function hiddenUntil({ id }: InboxItem): number | null {
  return inbox.value?.hidden.find((item) => item.id === id)?.until ?? null;
}

interface SnoozeTime {
  readonly name: string;
  readonly at: number;
}

/** The times to which a person may put an item off, the shortest first, in the person's time zone. */
export function snoozeTimes(at: Date): readonly [SnoozeTime, ...SnoozeTime[]] {
  const hour = (days: number, hours: number): number =>
    new Date(at.getFullYear(), at.getMonth(), at.getDate() + days, hours).getTime();
  const evening = at.getHours() < 18 ? [{ name: "This evening", at: hour(0, 18) }] : [];
  return [{ name: "1 hour", at: at.getTime() + 3_600_000 }, ...evening, { name: "Tomorrow", at: hour(1, 9) }];
}

/** A part of the list under a heading. */
export interface InboxSection {
  readonly title: string;
  readonly items: readonly InboxItem[];
}

const kindTitles = {
  question: "Needs your decision",
  stopped: "Stopped",
  looping: "Stopped",
  letter: "Not delivered",
} as const;

/**
 * Sections of decisions, of stopped runs and of undelivered messages, in this order; or one per agent, the longest
 * wait first.
 */
export function sectionsOf(items: readonly InboxItem[], isByAgent: boolean): readonly InboxSection[] {
  const titleOf = (item: InboxItem): string => (isByAgent ? (placeOf(item)[0] ?? "") : kindTitles[item.kind]);
  const sorted = isByAgent ? items.toSorted((one, other) => one.at - other.at) : items;
  const sections = Map.groupBy(sorted, titleOf);
  const order = isByAgent ? [...sections.keys()] : [...new Set(Object.values(kindTitles))];
  return order.flatMap((title) => {
    const found = sections.get(title);
    return found === undefined ? [] : [{ title, items: found }];
  });
}

export function headlineOf(item: InboxItem): string {
  switch (item.kind) {
    case "stopped":
      return stopHeadline(item.run);
    case "looping":
      return "Paused: it ends the processes that execute it";
    case "letter":
      return `A message could not be delivered, ${item.letter.deliveries} tries`;
    case "question": {
      const { kind, toolName, input } = item.approval;
      const offer = kind === "top_up" ? offerOf(input) : null;
      if (offer !== null) return `Asks for a top-up of ${offer.amount}`;
      if (kind !== "tool_call") return questionText(input) ?? visibleLine(toolName);
      const about = argumentOf(input);
      return visibleLine(about === "" ? toolName : `${toolName}: ${about}`);
    }
  }
}

/** At which limit a run stopped. The limit is known once the figures of the run are read. */
function stopHeadline({ runId, status, costUsd }: Run): string {
  const figure = figures.value.get(runId);
  const lack = figure === undefined ? null : lackOf({ status, failure: figure.failure, budget: figure });
  if (lack === null || lack.name === "maxCostUsd" || lack.limit === null)
    return `${endWord(status, figure?.failure ?? null)}: ${usd(costUsd)} spent`;
  const limit = amountWords(lack.name, lack.limit);
  return lack.name === "deadlineMs" ? `${endWord(status, null)} of ${limit}` : `Stopped at ${limit}`;
}

/** Who needs something, and where. */
export function placeOf(item: InboxItem): readonly string[] {
  return placeNames(item).map(visibleLine);
}

function placeNames(item: InboxItem): readonly [string, string] {
  switch (item.kind) {
    case "question":
      return [item.approval.agentId, titles.value.get(item.approval.runId) ?? shortId(item.approval.runId)];
    case "stopped":
    case "looping":
      return [item.run.agentId, item.run.title ?? item.run.runId];
    case "letter":
      return [item.letter.message.to, item.letter.runId ?? ""];
  }
}
