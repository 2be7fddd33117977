import { createHash } from "node:crypto";
import {
  canonicalJson,
  Fault,
  type JsonObject,
  type JsonValue,
  type RunHandle,
  type RunSummary,
  type RunSummaryStatus,
  type Runtime,
  type SessionEntry,
} from "../../kernel/index.ts";
import { runIdOfKey, startRun, type StartedRun, type StartingRequest } from "../server/routes/start-run.ts";

const unfinished: readonly RunSummaryStatus[] = ["pending", "running", "waiting", "paused"];

/** Each new message costs a look into the store. */
const mostNewMessages = 100;

/** Steering of older runs is not looked for. */
const mostSteeredRuns = 50;

/** A message of the user in a session. */
export interface SessionMessage {
  /** Name of an agent of the server. */
  readonly agent: string;
  readonly sessionId: string;
  /** The id that the client gave the message. A message with a known id and the same input is not sent again. */
  readonly messageId: string;
  readonly input: JsonValue;
  /** Whether only a message is accepted whose id is known. Default: `false`. */
  readonly mustBeKnown?: boolean;
  /** Whether the client says that it has edited the message. Default: `false`. */
  readonly isEdited?: boolean;
}

type KnownMessage = Pick<SessionMessage, "sessionId" | "messageId">;

/**
 * Sends a message in a session. The history is the one of the store. A message with a known id is a repetition, which
 * returns the run of the first request, or an edit, if its input differs: the session then continues before the message.
 * A run that is in progress in the session takes the message as steering.
 */
export async function sendMessage(request: StartingRequest, message: SessionMessage): Promise<StartedRun> {
  const runs = await runsOf(request.runtime, message);
  const [latest] = runs;
  const inputHash = hashOf(message.input);
  if (latest === undefined) {
    const { mustBeKnown = false, isEdited = false } = message;
    const steering = mustBeKnown || isEdited ? await steeringOf(request.runtime, message) : undefined;
    if (mustBeKnown && steering === undefined) throw unknownMessage(message);
    if (steering !== undefined && steering.metadata["clientInputHash"] !== inputHash)
      throw steeredMessage(message, steering);
    // The store recognises the repetition of a message that became steering.
    return submit(request, message, 0);
  }
  if (latest.metadata["clientInputHash"] === inputHash) return repeated(request, latest);
  await rewind(request.runtime, latest);
  return submit(request, message, runs.length);
}

/**
 * Answers a message of a session again, in a new branch, with the input that is stored. A run that is answering the message
 * is returned as it is.
 */
export async function answerAgain(
  request: StartingRequest,
  { agent, ...message }: Omit<SessionMessage, "input">,
): Promise<StartedRun> {
  const { runtime } = request;
  const runs = await runsOf(runtime, message);
  const [latest] = runs;
  if (latest === undefined) {
    const steering = await steeringOf(runtime, message);
    throw steering === undefined ? unknownMessage(message) : steeredMessage(message, steering);
  }
  if (unfinished.includes(latest.status)) return repeated(request, latest);
  const input = await inputOf(runtime, latest);
  await rewind(runtime, latest);
  return submit(request, { ...message, agent, input }, runs.length);
}

/**
 * The messages of the user at the end of a list that were not sent before: the last one, and those directly before it whose
 * ids are unknown.
 */
export async function newMessages<Message extends { readonly id: string; readonly role: string }>(
  { runtime }: Pick<StartingRequest, "runtime">,
  sessionId: string,
  messages: readonly Message[],
): Promise<readonly Message[]> {
  const found = messages.slice(-1);
  for (const message of messages.slice(0, -1).toReversed()) {
    if (message.role !== "user") break;
    if (await isKnown(runtime, { sessionId, messageId: message.id })) break;
    found.unshift(message);
    if (found.length > mostNewMessages)
      throw new Fault(
        "invalid_argument",
        `the request has more than ${mostNewMessages} new messages of the user; send fewer at once`,
      );
  }
  return found;
}

/** The run that is in progress in a session, whichever agent it belongs to. */
export async function unfinishedRun(
  { runtime, access }: Pick<StartingRequest, "runtime" | "access">,
  sessionId: string,
): Promise<RunHandle | undefined> {
  const { runs } = await runtime.list({ sessionId, kind: "invocation", status: unfinished, limit: 1 });
  const run = runs[0] && (await runtime.find(runs[0].runId));
  return run?.as(access.userId ?? access.name);
}

/** The runs that answered a message, newest first. */
async function runsOf(
  runtime: Runtime,
  { sessionId, messageId }: KnownMessage,
): Promise<readonly RunSummary[]> {
  const { runs } = await runtime.list({ sessionId, metadata: { clientMessageId: messageId }, limit: 500 });
  return runs;
}

/** Whether a message has started a run, or has become steering of one. */
async function isKnown(runtime: Runtime, message: KnownMessage): Promise<boolean> {
  return (await runsOf(runtime, message)).length > 0 || (await steeringOf(runtime, message)) !== undefined;
}

/** A message that became steering. */
interface Steering {
  readonly run: RunSummary;
  /** The metadata with which the message was submitted. */
  readonly metadata: JsonObject;
}

/**
 * Finds the run that has taken a message as steering, among the newest runs of the session. Costs O(events of these runs),
 * and is needed only for messages that have started no run.
 */
async function steeringOf(
  runtime: Runtime,
  { sessionId, messageId }: KnownMessage,
): Promise<Steering | undefined> {
  const { runs } = await runtime.list({ sessionId, kind: "invocation", limit: mostSteeredRuns });
  for (const run of runs) {
    const handle = await runtime.find(run.runId);
    for (const { metadata = {} } of (await handle?.receivedInput()) ?? [])
      if (metadata["clientMessageId"] === messageId) return { run, metadata };
  }
  return undefined;
}

/** `count` is the number of runs that have answered the message before. Duplicates of a request start one run. */
function submit(request: StartingRequest, message: SessionMessage, count: number): Promise<StartedRun> {
  const { agent, sessionId, messageId, input } = message;
  const inputHash = hashOf(input);
  return startRun(request, {
    agent,
    input,
    sessionId,
    runId: runIdOfKey(request.access, "message", sessionId, messageId, inputHash, count),
    metadata: { clientMessageId: messageId, clientInputHash: inputHash },
    whenBusy: "steer",
  });
}

async function repeated({ runtime, access }: StartingRequest, { runId }: RunSummary): Promise<StartedRun> {
  const run = await runtime.find(runId);
  if (run === undefined) throw new Fault("not_found", `run ${runId} does not exist`, { details: { runId } });
  return { run: run.as(access.userId ?? access.name), isSteered: false, fromSeq: 0, isRepeated: true };
}

/** Continues the session before the message that a run answered. Does nothing if the message left no entry. */
async function rewind({ sessions }: Runtime, { sessionId, runId }: RunSummary): Promise<void> {
  const isMessage = (entry: SessionEntry): boolean =>
    entry.type === "message" && entry.runId === runId && entry.message.role === "user";
  const path = await sessions.path(sessionId);
  const entry = path.find(isMessage) ?? (await findEntry(sessions, sessionId, isMessage));
  if (entry !== undefined && entry.parentId !== (path.at(-1)?.id ?? null))
    await sessions.move(sessionId, entry.parentId);
}

/** Finds an entry on any branch of a session. */
async function findEntry(
  sessions: Runtime["sessions"],
  sessionId: string,
  matches: (entry: SessionEntry) => boolean,
): Promise<SessionEntry | undefined> {
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof sessions.entries>> = await sessions.entries(
      sessionId,
      after === null ? {} : { after },
    );
    const found = page.entries.find(matches);
    if (found !== undefined) return found;
    after = page.next;
  } while (after !== null);
  return undefined;
}

/** The input of a run, as it is stored. */
async function inputOf(runtime: Runtime, { runId }: RunSummary): Promise<JsonValue> {
  const run = await runtime.find(runId);
  for await (const event of run?.events({ types: ["run_start"], follow: false }) ?? [])
    if (event.type === "run_start" && event.erased !== true) return event.data.input;
  throw new Fault("not_found", `the input of run ${runId} is no longer stored; send the message again`, {
    details: { runId },
  });
}

/** The fault of a message that cannot be answered again, because its answer is a part of that to another message. */
function steeredMessage({ sessionId, messageId }: KnownMessage, { run }: Steering): Fault {
  const { runId, metadata } = run;
  const first = metadata["clientMessageId"];
  const advice =
    first === undefined
      ? "send a new message"
      : `regenerate message ${JSON.stringify(first)}, or send a new message`;
  return new Fault(
    "invalid_argument",
    `message ${JSON.stringify(messageId)} was added to run ${runId} while that was in progress, so it cannot be edited or answered again alone; ${advice}`,
    { details: { sessionId, messageId, runId } },
  );
}

function unknownMessage({ sessionId, messageId }: KnownMessage): Fault {
  return new Fault("not_found", `session ${sessionId} has no message ${JSON.stringify(messageId)}`, {
    details: { sessionId, messageId },
  });
}

function hashOf(input: JsonValue): string {
  return createHash("sha256").update(canonicalJson(input)).digest("base64url");
}
