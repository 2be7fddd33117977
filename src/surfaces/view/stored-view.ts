import type { MoneyLine, QuestionView, RunFactsView, RunView, TaskView } from "./run-view.ts";
import { VersionedMap } from "./versioned-map.ts";

/** A view as JSON. Its maps are stored as lists in the same order. */
export interface StoredView extends RunFactsView {
  readonly tasks: readonly TaskView[];
  readonly money: readonly MoneyLine[];
  readonly asked: readonly QuestionView[];
}

export function storedView({ tasks, money, asked, ...facts }: RunView): StoredView {
  return { ...facts, tasks: [...tasks], money: [...money], asked: [...asked] };
}

/** Converts the result of `storedView` back to a view. */
export function viewOfStored({ tasks, money, asked, ...facts }: StoredView): RunView {
  return {
    ...facts,
    tasks: VersionedMap.of(tasks, ({ taskId }) => taskId),
    money: VersionedMap.of(money, moneyKey),
    asked: VersionedMap.of(asked, ({ request }) => request.approvalId),
  };
}

/** Returns the key of a cost line, made from agent and model. */
export function moneyKey({ agentId, model }: Pick<MoneyLine, "agentId" | "model">): string {
  return `${agentId} ${model}`;
}
