import { sha256 } from "../../runtime/index.ts";
import {
  canonicalJson,
  Fault,
  firstUnfinishedRun,
  type JsonValue,
  type RunHandle,
  type RunSummary,
  type Runtime,
  type SessionEntry,
} from "../../kernel/index.ts";
import { runIdOfKey, startRun, type StartedRun, type StartingRequest } from "../http/start-run.ts";

/** Maximum number of new messages in a request. It is limited because each message takes a query of the store. */
const mostNewMessages = 100;

/** A message of the user in a session. */
export interface SessionMessage {
  /** Name of an agent of the server. */
  readonly agent: string;
  readonly sessionId: string;
  /**
   * The id that the client gave the message. If a message with this id and the same input is known, it is not sent
   * again.
   */
  readonly messageId: string;
  readonly input: JsonValue;
  /** Whether the message is accepted only if its id is already known. Default: `false`. */
  readonly mustBeKnown?: boolean;
  /** Whether the client declares that it has edited the message. Default: `false`. */
  readonly isEdited?: boolean;
}

type KnownMessage = Pick<SessionMessage, "sessionId" | "messageId">;

/**
 * Sends a message in a session. The history is taken from the store. If the id of the message is known and its
 * input is the same, the message is a repetition, and the run of the first request is returned. If the input
 * differs, it is an edit, and the session continues before the message. If a run is active in the session, it
 * receives the message as steering.
 */
export async function sendMessage(request: StartingRequest, message: SessionMessage): Promise<StartedRun> {
  const runs = await runsOf(request.runtime, message);
  const [latest] = runs;
  if (latest === undefined) return sendUnanswered(request, message);
  if (latest.metadata["clientInputHash"] === hashOf(message.input)) return repeated(request, latest);
  await rewind(request.runtime, message.sessionId, latest);
  return submit(request, message, runIdOf(request, message, runs.length));
}

/** Sends a message that has started no run: a new message, or one that was sent as steering. */
async function sendUnanswered(request: StartingRequest, message: SessionMessage): Promise<StartedRun> {
  const { mustBeKnown = false, isEdited = false } = message;
  const steering = await steeringOf(request, message);
  if (steering === undefined && mustBeKnown) throw unknownMessage(message);
  const isChanged = steering !== undefined && steering.inputHash !== hashOf(message.input);
  if (isChanged && (mustBeKnown || isEdited)) throw steeredMessage(message, steering);
  // The store recognises the repetition of a message that became steering. With another input, it is a new message.
  const runId = isChanged ? runIdOf(request, message, 0) : firstRunIdOf(request, message);
  const started = await submit(request, message, runId);
  if (steering === undefined && started.isSteered) await refuseOtherInput(request, message);
  return started;
}

/** Throws if another request has sent the same id with another input at the same time and was faster. */
async function refuseOtherInput(request: StartingRequest, message: SessionMessage): Promise<void> {
  const steering = await steeringOf(request, message);
  if (steering !== undefined && steering.inputHash !== hashOf(message.input))
    throw steeredMessage(message, steering);
}

/**
 * Answers a message of a session again with its stored input, in a new branch. If a run is still answering the
 * message, this run is returned.
 */
export async function answerAgain(
  request: StartingRequest,
  { agent, ...message }: Omit<SessionMessage, "input">,
): Promise<StartedRun> {
  const { runtime } = request;
  const runs = await runsOf(runtime, message);
  const [latest] = runs;
  if (latest === undefined) {
    const steering = await steeringOf(request, message);
    throw steering === undefined ? unknownMessage(message) : steeredMessage(message, steering);
  }
  if (latest.endedAt === null) return repeated(request, latest);
  const input = await inputOf(runtime, latest);
  await rewind(runtime, message.sessionId, latest);
  const again = { ...message, agent, input };
  return submit(request, again, runIdOf(request, again, runs.length));
}

/**
 * Returns the new user messages at the end of a list: the last message, and the messages directly before it whose
 * ids are unknown.
 */
export async function newMessages<Message extends { readonly id: string; readonly role: string }>(
  request: Pick<StartingRequest, "runtime" | "access">,
  sessionId: string,
  messages: readonly Message[],
): Promise<readonly Message[]> {
  const found = messages.slice(-1);
  for (const message of messages.slice(0, -1).toReversed()) {
    if (message.role !== "user") break;
    if (await isKnown(request, { sessionId, messageId: message.id })) break;
    found.unshift(message);
    if (found.length > mostNewMessages)
      throw new Fault(
        "invalid_argument",
        `the request has more than ${mostNewMessages} new messages of the user; send fewer at once`,
      );
  }
  return found;
}

/** Returns the unfinished run of a session, regardless of its agent. */
export async function unfinishedRun(
  { runtime, access }: Pick<StartingRequest, "runtime" | "access">,
  sessionId: string,
): Promise<RunHandle | undefined> {
  const run = await firstUnfinishedRun(runtime, { sessionId, kind: "invocation" });
  return run === undefined ? undefined : (await runtime.find(run.runId))?.as(access.userId ?? access.name);
}

/** Returns the runs that answered a message, newest first. */
async function runsOf(
  runtime: Runtime,
  { sessionId, messageId }: KnownMessage,
): Promise<readonly RunSummary[]> {
  // A compaction that follows a run has its metadata as well.
  const { runs } = await runtime.list({
    sessionId,
    kind: "invocation",
    metadata: { clientMessageId: messageId },
    limit: 500,
  });
  return runs;
}

/** Whether a message has started a run, or was sent to a run as steering. */
async function isKnown(
  { runtime, access }: Pick<StartingRequest, "runtime" | "access">,
  message: KnownMessage,
): Promise<boolean> {
  if ((await runsOf(runtime, message)).length > 0) return true;
  return (await runtime.findSubmitted(firstRunIdOf({ access }, message))) !== undefined;
}

/** A message that became steering. */
interface Steering {
  readonly run: RunSummary;
  /** Hash of the input with which the message was first submitted. */
  readonly inputHash: JsonValue;
}

/**
 * Finds the run that received a message as steering. Only the events of the current run are read, which are needed
 * anyway for its answer. Therefore a new message takes no more time in a session with many long runs.
 */
async function steeringOf(
  { runtime, access }: Pick<StartingRequest, "runtime" | "access">,
  message: KnownMessage,
): Promise<Steering | undefined> {
  const submitted = firstRunIdOf({ access }, message);
  const handle = await runtime.findSubmitted(submitted);
  const received = (await handle?.receivedInput())?.find(({ submittedAs }) => submittedAs === submitted);
  if (handle === undefined || received === undefined) return undefined;
  return { run: await handle.summary(), inputHash: received.metadata?.["clientInputHash"] ?? null };
}

type Caller = Pick<StartingRequest, "access">;

/**
 * Returns the run id for the first submission of a message. It does not depend on the input, so that the message
 * can be found again.
 */
function firstRunIdOf({ access }: Caller, { sessionId, messageId }: KnownMessage): string {
  return runIdOfKey(access, "message", sessionId, messageId);
}

/**
 * Returns the run id for a repeated submission of a known message. `count` is the number of runs that have already
 * answered the message. Duplicates of a request therefore start only one run.
 */
function runIdOf({ access }: Caller, message: SessionMessage, count: number): string {
  const { sessionId, messageId, input } = message;
  return runIdOfKey(access, "message", sessionId, messageId, hashOf(input), count);
}

function submit(request: StartingRequest, message: SessionMessage, runId: string): Promise<StartedRun> {
  const { agent, sessionId, messageId, input } = message;
  return startRun(request, {
    agent,
    input,
    sessionId,
    runId,
    metadata: { clientMessageId: messageId, clientInputHash: hashOf(input) },
    whenBusy: "steer",
  });
}

async function repeated({ runtime, access }: StartingRequest, { runId }: RunSummary): Promise<StartedRun> {
  const run = await runtime.find(runId);
  if (run === undefined) throw new Fault("not_found", `run ${runId} does not exist`, { details: { runId } });
  return { run: run.as(access.userId ?? access.name), isSteered: false, fromSeq: 0, isRepeated: true };
}

/**
 * Moves the session's current entry before the message that a run answered. Does nothing if the message has no
 * entry.
 */
async function rewind({ sessions }: Runtime, sessionId: string, { runId }: RunSummary): Promise<void> {
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
export async function inputOf(runtime: Runtime, { runId }: RunSummary): Promise<JsonValue> {
  const run = await runtime.find(runId);
  for await (const event of run?.events({ types: ["run_start"], follow: false }) ?? [])
    if (event.type === "run_start" && event.erased !== true) return event.data.input;
  throw new Fault("not_found", `the input of run ${runId} is no longer stored; send the message again`, {
    details: { runId },
  });
}

/**
 * Returns the fault for a message that cannot be answered again, because its answer is part of the answer to
 * another message.
 */
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
  return sha256(canonicalJson(input));
}
