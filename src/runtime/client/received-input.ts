import type { Mail, ReceivedInput, RunId } from "../../kernel/index.ts";
import { submittedAs } from "../journal/wait-names.ts";
import type { RunStore } from "./run-store.ts";

/** Reads the steering and the follow-ups that were sent to a run, in the order of arrival. */
export async function readInput(
  { events, mailbox }: Pick<RunStore, "events" | "mailbox">,
  runId: RunId,
): Promise<readonly ReceivedInput[]> {
  // The mailbox is read first: mail that its owner applies meanwhile is then in both, and not in neither.
  const waiting = (await mailbox.read(runId)).flatMap((mail) => inputOf(mail));
  const applied: ReceivedInput[] = [];
  for await (const event of events.read(runId))
    if (event.type === "run_steer") applied.push({ ...event.data, seq: event.seq });
  const isApplied = ({ submittedAs: id }: ReceivedInput): boolean =>
    id !== undefined && applied.some((each) => each.submittedAs === id);
  return [...applied, ...waiting.filter((each) => !isApplied(each))];
}

function inputOf({ id, from: by, body }: Mail): readonly ReceivedInput[] {
  if (body.type !== "steer" && body.type !== "follow_up") return [];
  const { type: kind, ...input } = body;
  const runId = submittedAs(id);
  return [{ kind, by, ...input, ...(runId && { submittedAs: runId }), seq: null }];
}
