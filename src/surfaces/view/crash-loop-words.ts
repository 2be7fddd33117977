import { visibleLine, type CrashLoop, type LostOwner } from "../../kernel/index.ts";

/** Describes in one line why a run is paused as a crash loop. */
export function crashLoopHeadline({ ended }: Pick<CrashLoop, "ended">): string {
  const count = ended.length === 1 ? "1 process" : `${ended.length} processes`;
  return `${count} ended while executing this run, in a row and without progress of it`;
}

/** Describes what is known and what is unknown about a crash loop, one fact per line. */
export function crashLoopLines({ ended, unknown, calls }: CrashLoop): readonly string[] {
  const inFlight = calls.map(({ taskId, kind, name }) => `${kind} ${name ?? "without a name"} of ${taskId}`);
  return [
    ...ended.map((owner) => `Ended: ${ownerWords(owner)}.`),
    ...unknown.map(
      (owner) => `Unknown: ${ownerWords(owner)}. It may have lost only its connection, and does not count.`,
    ),
    inFlight.length === 0
      ? "No model or tool call was in flight at the last loss: the process ended in the agent's own code or in a step."
      : `In flight at the last loss: ${inFlight.join(", ")}.`,
  ].map(visibleLine);
}

function ownerWords({ workerId, host, at }: LostOwner): string {
  const place = host === null ? "an unknown machine" : host;
  return `worker ${workerId} on ${place}, noticed ${new Date(at).toISOString()}`;
}
