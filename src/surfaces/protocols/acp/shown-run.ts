import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { AnswerFold, readInput } from "../../../agents/index.ts";
import type { JsonValue, RunHandle, RunSummary } from "../../../kernel/index.ts";
import { AnswerUpdates } from "./answer-updates.ts";
import { contentBlock, textBlock } from "./content-blocks.ts";

/** What has been shown of a run: all events before `next`. */
export interface ShownRun {
  readonly runId: RunHandle["runId"];
  readonly next: number;
}

/**
 * Shows a run whose messages are not in its session yet: one that has not ended, or that failed. Ends with a text that says
 * how to continue it. Costs O(events of the run).
 */
export async function showRun(
  run: RunHandle,
  { endedAt }: RunSummary,
  root: string,
  notify: (update: SessionUpdate) => Promise<void>,
): Promise<ShownRun> {
  const { runId } = run;
  const fold = new AnswerFold();
  const updates = new AnswerUpdates(root);
  let next = 0;
  let problem = "";
  for await (const event of run.events({ follow: false })) {
    if (!("seq" in event)) continue;
    next = event.seq + 1;
    if (event.type === "run_start") for (const update of inputUpdates(event.data.input)) await notify(update);
    if (event.type === "task_end" && event.taskId === "t0") problem = event.data.failure?.message ?? "";
    for (const part of fold.read(event)) for (const update of updates.read(part)) await notify(update);
  }
  const how = "Send /resume to continue it";
  const text =
    endedAt === null
      ? `\n\n[${runId} has not ended. ${how}, or a message that it reads next.]`
      : `\n\n[${runId} failed: ${problem} ${how}.]`;
  await notify({
    sessionUpdate: "agent_message_chunk",
    content: textBlock(text),
    messageId: `${runId}/notice`,
  });
  return { runId, next };
}

function inputUpdates(input: JsonValue): readonly SessionUpdate[] {
  return (readInput(input)?.message?.content ?? []).map((part) => ({
    sessionUpdate: "user_message_chunk",
    content: contentBlock(part),
  }));
}
