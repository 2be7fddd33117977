import {
  CancellationError,
  Fault,
  messageNameKind,
  requireMessage,
  reviveFault,
  rootTaskId as root,
  updateTable,
  type Delta,
  type Event,
  type JsonValue,
  type MailBody,
  type Query,
  type RunId,
  type TailOptions,
  type Update,
  type UpdateOptions,
  type UpdateReply,
} from "../../kernel/index.ts";
import { mailOfUpdate, updateWait } from "../journal/wait-names.ts";
import type { RunStore } from "./run-store.ts";
import type { StoredRun } from "./stored-run.ts";

/** The events after which a run has ended. */
const endTypes = ["run_end", "usage_corrected"] as const;

/** Number of events that are read first in the search for a published value. Each further part is twice as long. */
const firstPart = 64;

/** Returns the last value that the root task published under a name. Reads the log backwards, in parts. */
export async function readPublished(
  { events }: Pick<RunStore, "events">,
  runId: RunId,
  query: string | Query<never, unknown>,
): Promise<unknown> {
  requireMessage("query", "read()", query);
  const name = nameOf(query, "read()");
  let end = (await events.lastSeq(runId)) + 1;
  for (let length = firstPart; end > 0; length *= 2) {
    const start = Math.max(0, end - length);
    let found: Event<"value_published"> | undefined;
    for await (const event of events.read(runId, start)) {
      if (event.seq >= end) break;
      if (event.type === "value_published" && event.taskId === root && event.data.name === name)
        found = event;
    }
    if (found !== undefined && found.erased === true) return undefined;
    if (found !== undefined)
      return typeof query === "string" ? found.data.value : query.read(found.data.value);
    end = start;
  }
  return undefined;
}

/** The parts of a run that the sender of an update needs. */
interface UpdatedRun {
  readonly runId: RunId;
  readonly store: Pick<RunStore, "events">;
  readonly live: () => StoredRun;
  readonly newId: () => string;
  /** Sends a command. Returns `false` if a command with this id was sent before. */
  readonly put: (body: MailBody, id: string) => Promise<boolean>;
  readonly tail: (options: TailOptions) => AsyncIterable<Event | Delta>;
  /**
   * Whether the ended run continues. `next` is the sequence number that follows that of the last event that was
   * read.
   */
  readonly isResumed: (next: number) => boolean | Promise<boolean>;
}

/**
 * Sends an update and returns its reply, which is an event of the run. If this process dies, another call with the
 * same id returns the same reply.
 */
export async function sendUpdate(
  run: UpdatedRun,
  update: string | Update<never, unknown, never, unknown>,
  value: JsonValue,
  options: UpdateOptions,
): Promise<JsonValue> {
  requireMessage("update", "update()", update);
  const name = nameOf(update, "update()");
  const { id = run.newId(), signal } = updateTable.read("update()", options);
  if (typeof update !== "string") await update.read(value);
  const { runId } = run;
  const last = await run.store.events.lastSeq(runId);
  // An update that was sent before may have its reply, also if the run has ended since.
  const early = options.id === undefined ? undefined : await replyIn(run.store.events.read(runId), name, id);
  if (early !== undefined) return valueOf(early);
  try {
    await run.live().refuseIfOver(`update ${JSON.stringify(name)}`);
  } catch (error) {
    // The run may have replied and ended since its log was read.
    const late = options.id === undefined ? undefined : await replyIn(run.store.events.read(runId), name, id);
    if (late !== undefined) return valueOf(late);
    throw error;
  }
  const body = { type: "resolve", taskId: root, wait: updateWait(name), value: { id, value } } as const;
  await run.put(body, mailOfUpdate(runId, name, id));
  let next = last + 1;
  do {
    const types = ["update_end", ...endTypes] as const;
    for await (const event of run.tail({ fromSeq: next, types, ...(signal !== undefined && { signal }) })) {
      if ("seq" in event) next = event.seq + 1;
      if (isReply(event, name, id)) return valueOf(event.data.reply);
    }
    if (signal?.aborted === true)
      throw new CancellationError(`the wait for the reply to update ${JSON.stringify(name)} was ended`);
  } while (await run.isResumed(next));
  const { status } = await run.live().summary();
  throw new Fault(
    "not_found",
    `run ${runId} ended (${status}) without a reply to update ${JSON.stringify(name)}; start another run, or resume this one and send the update again with id ${JSON.stringify(id)}`,
    { details: { runId, status, updateId: id } },
  );
}

async function replyIn(
  events: AsyncIterable<Event>,
  name: string,
  id: string,
): Promise<UpdateReply | undefined> {
  for await (const event of events) if (isReply(event, name, id)) return event.data.reply;
  return undefined;
}

function isReply(event: Event | Delta, name: string, id: string): event is Event<"update_end"> {
  return event.type === "update_end" && event.data.id === id && event.data.name === name;
}

function valueOf(reply: UpdateReply): JsonValue {
  if (reply.status === "completed") return reply.value;
  throw reviveFault(reply.failure);
}

function nameOf(message: string | { readonly name: string }, call: string): string {
  const name = typeof message === "string" ? message : message?.name;
  messageNameKind.check?.(name, "name", call);
  return name;
}
