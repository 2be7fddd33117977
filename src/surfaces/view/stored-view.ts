import type { MoneyLine, QuestionView, RunFactsView, RunView, TaskView } from "./run-view.ts";
import { VersionedMap } from "./versioned-map.ts";

/** A view as JSON: its maps are lists, in the same order. */
export interface StoredView extends RunFactsView {
  readonly tasks: readonly TaskView[];
  readonly money: readonly MoneyLine[];
  readonly asked: readonly QuestionView[];
}

export function storedView({ tasks, money, asked, ...facts }: RunView): StoredView {
  return { ...facts, tasks: [...tasks], money: [...money], asked: [...asked] };
}

/** The view of which `storedView` returned this. */
export function viewOfStored({ tasks, money, asked, ...facts }: StoredView): RunView {
  return {
    ...facts,
    tasks: VersionedMap.of(tasks, ({ taskId }) => taskId),
    money: VersionedMap.of(money, moneyKey),
    asked: VersionedMap.of(asked, ({ request }) => request.approvalId),
  };
}

/** The key of a line: the agent and the model. */
export function moneyKey({ agentId, model }: Pick<MoneyLine, "agentId" | "model">): string {
  return `${agentId} ${model}`;
}
