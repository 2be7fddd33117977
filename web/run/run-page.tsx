import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { place, runTabs, type RunTab } from "../app/route.ts";
import { Conversation } from "./conversation.tsx";
import { RunFrame } from "./run-frame.tsx";
import { RunModel } from "./run-model.ts";

interface RunViewProps {
  readonly model: RunModel;
}

const views: Readonly<Partial<Record<RunTab, (props: RunViewProps) => JSX.Element>>> = {
  conversation: Conversation,
};

/** The tabs of a run that the page has. */
const shownTabs: readonly RunTab[] = runTabs.filter((tab) => views[tab] !== undefined);

/** One run. It is followed for as long as one of its views is open. */
export function RunPage({ runId }: { readonly runId: string }): JSX.Element {
  const model = useMemo(() => new RunModel(runId), [runId]);
  useEffect(() => model.open(), [model]);
  const tab = place.value.parts[2] as RunTab | undefined;
  const View = (tab === undefined ? undefined : views[tab]) ?? Conversation;
  const refusal = model.refusal.value;
  if (refusal !== null && model.live.value === null)
    return (
      <main class="page" id="main">
        <h1>This run cannot be shown</h1>
        <p class="prose">
          {refusal.message} <code>{refusal.code}</code>
        </p>
        <p>
          <a class="button" href="/runs">
            All runs
          </a>
        </p>
      </main>
    );
  return (
    <RunFrame model={model} tabs={shownTabs} tab={tab ?? "conversation"}>
      <View model={model} />
    </RunFrame>
  );
}
