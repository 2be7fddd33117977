import { Fault, type JsonValue, type SubmitOptions } from "../../../kernel/index.ts";
import type { Owner } from "../access/owner.ts";
import { viewOf, type ChannelParts } from "./parts.ts";
import type { StoredMessage } from "./stored-message.ts";

export interface RunStart {
  readonly message: StoredMessage;
  readonly owner: Owner;
  /** N1: the id of the run. */
  readonly runId: string;
  readonly signal: AbortSignal;
}

/** Codes of faults that are temporary: the same call may succeed later. */
export const transientCodes: ReadonlySet<string> = new Set([
  "store_unavailable",
  "store_full",
  "store_read_only",
  "store_lost",
  "closed",
  "rate_limited",
  "agent_busy",
]);

/**
 * Submits the run of a message, or finds it if it was submitted before. Waits while another run uses the session. Returns
 * a reply if the run cannot be started.
 */
export async function startRun(
  parts: ChannelParts,
  start: RunStart,
): Promise<{ readonly runId: string } | { readonly reply: string }> {
  const { channel, log } = parts;
  for (;;) {
    start.signal.throwIfAborted();
    try {
      return { runId: await submit(parts, start) };
    } catch (error) {
      const fault = Fault.from(error);
      const busy = fault.code === "agent_busy" ? fault.details?.["runId"] : undefined;
      if (typeof busy === "string" && (await untilEnded(parts, start, busy))) continue;
      if (transientCodes.has(fault.code) || start.signal.aborted) throw fault;
      log(`channel ${channel.name}: a message could not be started: ${fault.message}`);
      return { reply: "This message could not be started. The log of the server has the reason." };
    }
  }
}

async function submit(parts: ChannelParts, { message, owner, runId, signal }: RunStart): Promise<string> {
  const { runtime, agents, agent: name, channel } = parts;
  const { tenantId, userId } = owner;
  const { sessionId } = message;
  const view = viewOf(runtime, owner);
  const existing = await view.find(runId);
  if (existing !== undefined) return existing.runId;
  const input = await inputOf(parts, message, signal);
  const started = await agents.start(name, { runId, input, sessionId, tenantId, userId });
  const own = started.sessionId ?? sessionId;
  const options: SubmitOptions = {
    runId,
    sessionId: own,
    channel: channel.platform,
    // The page shows the answer while it is written.
    streaming: true,
    metadata: { ...started.metadata, channel: channel.name },
    ...(tenantId === null && { userId }),
  };
  return (await view.submit(started.agent, await expanded(parts, input, own), options)).runId;
}

/**
 * Returns the input with its template or skill expanded. An input that begins with a name unknown to the workspace,
 * such as `/start`, is returned unchanged.
 */
async function expanded(
  { agents, agent }: ChannelParts,
  input: JsonValue,
  sessionId: string,
): Promise<JsonValue> {
  try {
    return await agents.expand(agent, input, sessionId);
  } catch (error) {
    if (Fault.is(error) && error.code === "not_found") return input;
    throw error;
  }
}

/**
 * Returns the text of a message together with its files, if it has any. For a file that cannot be loaded, the text
 * contains its name.
 */
async function inputOf(
  { channel, log }: ChannelParts,
  { text, attachments }: StoredMessage,
  signal: AbortSignal,
): Promise<JsonValue> {
  if (attachments.length === 0) return text;
  const parts: JsonValue[] = text === "" ? [] : [{ type: "text", text }];
  for (const reference of attachments) {
    try {
      if (channel.attachment === undefined) throw new Error("the channel loads no files");
      parts.push((await channel.attachment(reference, signal)) as unknown as JsonValue);
    } catch (error) {
      signal.throwIfAborted();
      const reason = Fault.from(error).message;
      log(`channel ${channel.name}: a file was not loaded: ${reason}`);
      parts.push({ type: "text", text: "[The person sent a file that could not be loaded.]" });
    }
  }
  return parts;
}

/**
 * Waits for the end of another run of the session, such as one that was started on the web page. Returns whether
 * that run ended.
 */
async function untilEnded(
  { runtime }: ChannelParts,
  { owner, signal }: RunStart,
  runId: string,
): Promise<boolean> {
  const run = await viewOf(runtime, owner).find(runId);
  if (run === undefined) return false;
  for await (const event of run.events({ types: ["run_end"], signal }))
    if (event.type === "run_end") return true;
  return false;
}
