import { argumentOf } from "../../src/surfaces/view/excerpt.ts";
import { visibleLine } from "../../src/kernel/index.ts";
import { computed } from "@preact/signals";
import { approvals, letters, looping, stopped, titles } from "../api/runs-feed.ts";
import type { Approval, DeadLetter, Run } from "../api/types.ts";
import { amountWords, lackOf } from "../../src/surfaces/view/top-up-offer.ts";
import { figures } from "./run-figures.ts";
import { statusWord } from "./status.ts";
import { questionText } from "./words/approval-words.ts";
import { shortId, usd } from "../base/format.ts";

/** One thing that waits for a person. */
export type InboxItem =
  | { readonly kind: "question"; readonly id: string; readonly at: number; readonly approval: Approval }
  | { readonly kind: "stopped" | "looping"; readonly id: string; readonly at: number; readonly run: Run }
  | { readonly kind: "letter"; readonly id: string; readonly at: number; readonly letter: DeadLetter };

/** Everything that waits for a person, the oldest need on top. `null` until it is read. List, badge and figures share it. */
export const inbox = computed((): readonly InboxItem[] | null => {
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
    return `${statusWord(status)}: ${usd(costUsd)} spent`;
  return `${statusWord(status)} of ${amountWords(lack.name, lack.limit)}`;
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
