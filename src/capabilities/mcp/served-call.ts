import { hash, randomUUID } from "node:crypto";
import {
  inputRequired,
  SdkError,
  type CallToolResult,
  type InputRequiredResult,
  type RequestStateCodec,
  type ServerContext,
} from "@modelcontextprotocol/server";
import {
  answerIfLive,
  Fault,
  formatRunId,
  parseSessionId,
  type ApprovalKind,
  type ApprovalRequest,
  type Delta,
  type Event,
  type JsonObject,
  type JsonValue,
  type RunHandle,
  type RunId,
  type Runtime,
  type SessionId,
  type SubmitOptions,
} from "../../kernel/index.ts";
import { HostProgress } from "./host-progress.ts";
import { idempotencyMeta } from "./remote-tool.ts";
import { refusal, type HostCaller, type Offer } from "./served-offer.ts";
import { hostDecision, hostQuestion } from "./served-question.ts";

/** State of a call that waits for an answer. The host keeps it, signed, until it sends it back with the answer. */
export interface CallState {
  readonly runId: RunId;
  readonly session: string;
  readonly approvalId: string;
  /** Kind of the question. It determines what an answer means. */
  readonly kind: ApprovalKind;
  /** Number of the question's event. Later events have not been read yet. */
  readonly seq: number;
}

/** Options that all calls of a server share. */
export interface ServingOptions {
  /** Name of the server. */
  readonly server: string;
  /** Runtime that executes the calls. */
  readonly runtime: Runtime;
  /** Signs and verifies the state that hosts carry. */
  readonly codec: RequestStateCodec<CallState>;
  /** Deadline of the run of each call, in milliseconds. `null` means unlimited. */
  readonly callTimeoutMs: number | null;
  /**
   * How a question is answered if the host cannot ask a person: `deny` refuses it, `wait` leaves it to another
   * approver.
   */
  readonly withoutPerson: "deny" | "wait";
  /** Receives problems that do not stop a call. */
  readonly onWarning: (warning: Fault) => void;
}

/** One call of a host. */
export interface HostCall {
  readonly offer: Offer;
  /** Arguments of the call. */
  readonly given: JsonObject;
  readonly context: ServerContext;
  readonly caller: HostCaller;
  /** Whether the host can ask a person. */
  readonly canAsk: boolean;
}

/**
 * Executes a call of a host as a run and follows it to its end: progress of the run is sent to the host, and questions
 * are asked through the host. If the host cancels the call, the run is cancelled. C3: if the host disconnects, the run
 * continues, and the host may repeat the call under the same idempotency key.
 */
export async function serveCall(
  options: ServingOptions,
  call: HostCall,
): Promise<CallToolResult | InputRequiredResult> {
  try {
    const state = call.context.mcpReq.requestState<CallState>();
    const { run, session } =
      state === undefined ? await start(options, call) : await resume(options, call, state);
    return await follow(options, call, { run, session, fromSeq: state === undefined ? 0 : state.seq + 1 });
  } catch (error) {
    if (!Fault.is(error)) throw error;
    return refusal(error.message);
  }
}

interface Followed {
  readonly run: RunHandle;
  readonly session: string;
  readonly fromSeq: number;
}

async function start(
  { server, runtime, callTimeoutMs }: ServingOptions,
  { offer, given, caller, context }: HostCall,
): Promise<Omit<Followed, "fromSeq">> {
  const { userId, tenantId = null } = caller;
  const session = offer.session(given) ?? randomUUID();
  const { _meta: meta } = context.mcpReq;
  const key = meta?.[idempotencyMeta];
  const who = callerKey(server, caller);
  const options: SubmitOptions = {
    channel: "mcp",
    streaming: true,
    budget: { deadlineMs: callTimeoutMs },
    sessionId: ownSession(who, session),
    // The view of a tenant sets the user itself.
    ...(userId !== null && tenantId === null && { userId }),
    ...(typeof key === "string" && { runId: repeatedRun([...who, offer.name, key]) }),
  };
  const { agent } = offer;
  const input = offer.input(given);
  const run =
    typeof agent === "string"
      ? await submitNamed(caller, agent, input, options)
      : await (caller.runtime ?? runtime).submit(agent, input, options);
  return { run, session };
}

function submitNamed(
  { submit }: HostCaller,
  agent: string,
  input: JsonValue,
  options: SubmitOptions,
): Promise<RunHandle> {
  if (submit !== undefined) return submit(agent, input, options);
  throw new Fault("not_found", `agent ${agent} is offered by its name, but the caller cannot start it`);
}

/** Returns the identity of a caller of a server. Other callers have other conversations and idempotency keys. */
export function callerKey(server: string, { userId, tenantId }: HostCaller): readonly (string | null)[] {
  return tenantId === undefined ? [server, userId] : [server, tenantId, userId];
}

/** Returns the session id for a conversation that the host names. Hosts of other users cannot reach it. */
function ownSession(who: readonly (string | null)[], session: string): SessionId {
  const wall = hash("sha256", JSON.stringify(who), "hex").slice(0, 16);
  return parseSessionId(`mcp:${wall}/${session}`);
}

/** J6: returns the run id for an idempotency key, so that a repeated call is the same run. */
function repeatedRun(call: readonly (string | null)[]): RunId {
  return formatRunId(hash("sha256", JSON.stringify(call), "base64url"));
}

async function resume(
  { runtime, server }: ServingOptions,
  { context: { mcpReq }, caller }: HostCall,
  { runId, session, approvalId, kind }: CallState,
): Promise<Omit<Followed, "fromSeq">> {
  const run = await (caller.runtime ?? runtime).find(runId);
  if (run === undefined)
    throw new Fault("not_found", `the run ${runId} does not exist any more: call the tool again`);
  const by = caller.userId ?? `the MCP host of ${server}`;
  const decision = hostDecision(mcpReq.inputResponses?.[questionKey], { kind, by });
  // A host may repeat its call. The run that the first one answered may have ended.
  await answerIfLive(run, approvalId, decision);
  return { run, session };
}

const questionKey = "question";

async function follow(
  options: ServingOptions,
  call: HostCall,
  { run, session, fromSeq }: Followed,
): Promise<CallToolResult | InputRequiredResult> {
  const { context, offer } = call;
  const { signal } = context.mcpReq;
  const progress = new HostProgress(context, options.onWarning);
  const stop = (): void => {
    if (isCancelled(signal))
      run.cancel("cancelled by the MCP host").catch((error: unknown) => options.onWarning(Fault.from(error)));
  };
  signal.addEventListener("abort", stop);
  try {
    if (signal.aborted) stop();
    for await (const event of run.events({ fromSeq, signal })) {
      progress.show(event);
      const question = questionIn(event);
      if (question === undefined) continue;
      if (call.canAsk) return await ask(options, context, { run, session, question });
      if (options.withoutPerson === "deny")
        await answerIfLive(run, question.data.approvalId, {
          decision: "denied",
          reason: "the MCP host cannot ask a person",
        });
    }
    if (signal.aborted && !isCancelled(signal)) throw signal.reason;
    await progress.sent;
    return offer.result(await run.result(), session);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Whether the host cancelled the call, rather than lost the connection. */
function isCancelled({ aborted, reason }: AbortSignal): boolean {
  return aborted && !SdkError.isInstance(reason);
}

function questionIn(event: Event | Delta): Event<"approval_request"> | undefined {
  return event.type === "approval_request" ? event : undefined;
}

async function ask(
  { codec }: ServingOptions,
  context: ServerContext,
  {
    run,
    session,
    question: { data, seq },
  }: {
    readonly run: RunHandle;
    readonly session: string;
    readonly question: { readonly data: ApprovalRequest; readonly seq: number };
  },
): Promise<InputRequiredResult> {
  const { approvalId, kind } = data;
  const state: CallState = { runId: run.runId, session, approvalId, kind, seq };
  return inputRequired({
    inputRequests: { [questionKey]: hostQuestion(data) },
    requestState: await codec.mint(state, context),
  });
}
