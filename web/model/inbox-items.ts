import { argumentOf } from "../../src/surfaces/view/excerpt.ts";
import { visibleLine } from "../../src/kernel/index.ts";
import { computed } from "@preact/signals";
import { approvals, hidden, letters, looping, stopped, titles } from "../api/runs-feed.ts";
import type { Approval, DeadLetter, Run } from "../api/types.ts";
import { amountWords, lackOf } from "../../src/surfaces/view/top-up-offer.ts";
import { figures } from "./run-figures.ts";
import { endWord } from "./status.ts";
import { offerOf, questionText } from "./words/approval-words.ts";
import { shortId, usd } from "../base/format.ts";
import { now } from "../base/now.ts";

interface ItemFacts {
  readonly id: string;
  /** Since when it is there. An item that comes back has another time, so that a closed one is shown again. */
  readonly at: number;
}

/** One thing in the inbox. */
export type InboxItem =
  | (ItemFacts & { readonly kind: "question"; readonly approval: Approval })
  | (ItemFacts & { readonly kind: "stopped" | "looping"; readonly run: Run })
  | (ItemFacts & { readonly kind: "letter"; readonly letter: DeadLetter });

/** Everything in the inbox, the oldest on top, also what the person has taken off it. `null` until it is read. */
const everything = computed((): readonly InboxItem[] | null => {
  if (approvals.value === null) return null;
  const items: InboxItem[] = [
    ...approvals.value.map((approval): InboxItem => ({
      kind: "question",
      id: `${approval.runId}:${approval.approvalId}`,
      at: approval.requestedAt,
      approval,
    })),
    ...stopped.value.map((run): InboxItem => ({
      kind: "stopped",
      id: run.runId,
      at: run.endedAt ?? run.updatedAt,
      run,
    })),
    ...looping.value.map((run): InboxItem => ({ kind: "looping", id: run.runId, at: run.updatedAt, run })),
    ...letters.value.map((letter): InboxItem => ({
      kind: "letter",
      id: letter.message.id,
      at: letter.message.sentAt,
      letter,
    })),
  ];
  return items.toSorted((one, other) => one.at - other.at);
});

/** Whether the person has taken the item off the inbox, and it has not changed since. */
function isHidden({ id, at }: InboxItem): boolean {
  return hidden.value.some(
    (item) => item.id === id && item.change === String(at) && (item.until === null || item.until > now.value),
  );
}

/** The items that are on the list of this person. `null` until they are read. */
export const inbox = computed(() => everything.value?.filter((item) => !isHidden(item)) ?? null);
/** The items that this person has closed or snoozed. */
export const putAway = computed(() => everything.value?.filter(isHidden) ?? []);
/** What only a person can decide. Badge, figures and titles count this, and not runs that stopped. */
export const waitsForYou = computed(() => inbox.value?.filter(({ kind }) => kind === "question") ?? null);

/** When a snoozed item comes back. `null` for a closed one, which comes back when it changes. */
export function hiddenUntil({ id }: InboxItem): number | null {
  return hidden.value.find((item) => item.id === id)?.until ?? null;
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

/** Decisions first, then what stopped, then what was not delivered; or by agent, the one that has waited longest first. */
export function sectionsOf(items: readonly InboxItem[], isByAgent: boolean): readonly InboxSection[] {
  const titleOf = (item: InboxItem): string => (isByAgent ? (placeOf(item)[0] ?? "") : kindTitles[item.kind]);
  const sections = Map.groupBy(items, titleOf);
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
