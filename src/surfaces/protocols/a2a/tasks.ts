import { Fault, parseAgentId, type RunHandle } from "../../../kernel/index.ts";
import { callerSession, shownSession } from "../../http/caller-session.ts";
import type { RouteRequest } from "../../http/route.ts";
import type { AgentInfo } from "../../http/served-agents.ts";
import { shortDigest } from "../../http/short-digest.ts";
import { runIdOfKey, startRun } from "../../http/start-run.ts";
import { answerQuestions, readQuestions } from "../client-answers.ts";
import { a2aFault } from "./a2a-errors.ts";
import { answersOf, inputOf } from "./a2a-message.ts";
import type { WireMessage } from "./a2a-schema.ts";
import { TaskView } from "./task-view.ts";

/** A request to an agent. */
export interface CalledAgent extends Pick<
  RouteRequest,
  "runtime" | "access" | "server" | "request" | "disconnect"
> {
  readonly agent: AgentInfo;
}

/** The task that a message has started or reached. */
export interface ReceivedMessage {
  readonly run: RunHandle;
  /** Seq of the first event after which the task may be found waiting: after an answer, a later one than the question's. */
  readonly waitsFromSeq: number;
}

/** Reads the task of a run, with the name of its context that the caller knows. */
export function viewOf(
  { access }: Pick<CalledAgent, "access">,
  { run, waitsFromSeq }: ReceivedMessage,
): Promise<TaskView> {
  return TaskView.read(run, shownSession(access, run.sessionId), waitsFromSeq);
}

/** The run of a task of the agent, as the caller may see it. Throws `TASK_NOT_FOUND`, also for a task of another tenant. */
export async function requireTask(
  { runtime, access, agent }: CalledAgent,
  taskId: string,
): Promise<RunHandle> {
  const run = await runtime.find(taskId);
  if (run === undefined || parseAgentId(run.agentId).name !== agent.name)
    throw a2aFault("TASK_NOT_FOUND", `agent ${agent.name} has no task ${JSON.stringify(taskId)}`, { taskId });
  return run.as(access.userId ?? access.name);
}

/**
 * Takes a message of the client. Without a task it starts one, or reaches the one that is in progress in its context. A
 * message to a task that asks is the answer, and otherwise steering. A message whose id is known has no further effect: the
 * store recognises it, also after a crash and in every process.
 */
export async function receiveMessage(of: CalledAgent, message: WireMessage): Promise<ReceivedMessage> {
  const { taskId = "" } = message;
  return taskId === "" ? startTask(of, message) : continueTask(of, message, taskId);
}

async function startTask(of: CalledAgent, message: WireMessage): Promise<ReceivedMessage> {
  const { agent, access } = of;
  const { messageId, contextId = "" } = message;
  // The context follows from the message, so that a repeated message finds it.
  const named = contextId === "" ? `ctx_${shortDigest(agent.name, messageId)}` : contextId;
  const sessionId = await callerSession(of, named);
  const { run } = await startRun(of, {
    agent: agent.name,
    input: inputOf(message, agent.inputSchema !== null),
    runId: runIdOfKey(access, "a2a", agent.name, sessionId, messageId),
    ...(agent.kind === "agent" && { sessionId, whenBusy: "steer" as const, channel: "a2a" }),
    metadata: { clientMessageId: messageId },
  });
  return { run, waitsFromSeq: 0 };
}

async function continueTask(of: CalledAgent, message: WireMessage, taskId: string): Promise<ReceivedMessage> {
  const run = await requireTask(of, taskId);
  checkContext(of, message, run);
  const answered = await answeredWith(run, message);
  const inputId = `a2a-${shortDigest(message.messageId)}`;
  if (answered === undefined && (await run.receivedInput()).some((each) => each.inputId === inputId))
    return { run, waitsFromSeq: 0 };
  const questions = await readQuestions(run);
  const { waiting, ended } = await stateOf(run);
  if (answered === undefined && ended)
    throw a2aFault(
      "UNSUPPORTED_OPERATION",
      `task ${taskId} has ended and takes no more messages; send the message without taskId to start a task in the same context`,
      { taskId },
    );
  if (answered === undefined && !waiting) {
    await run.steer(inputOf(message, false), { id: inputId });
    return { run, waitsFromSeq: 0 };
  }
  // A repeated message answers only what it answered before, and not the next question.
  const open = questions.open.filter(({ request }) => answered?.has(request.approvalId) ?? true);
  if (open.length === 0) return { run, waitsFromSeq: 0 };
  const answers = answersOf(message, open);
  if (answered === undefined)
    for (const { question } of answers) await noteAnswer(run, message, question.request.approvalId);
  await answerQuestions(
    run,
    { ...questions, open },
    (question) => answers.find((each) => each.question.questionId === question.questionId)?.answer,
  );
  return { run, waitsFromSeq: questions.next };
}

async function stateOf(run: RunHandle): Promise<{ readonly waiting: boolean; readonly ended: boolean }> {
  const { status, waitsFor, endedAt } = await run.summary();
  return { waiting: status === "waiting" && waitsFor.includes("person"), ended: endedAt !== null };
}

function checkContext(
  { access }: CalledAgent,
  { contextId = "", taskId = "" }: WireMessage,
  run: RunHandle,
): void {
  const own = shownSession(access, run.sessionId);
  if (contextId === "" || contextId === own || contextId === run.sessionId) return;
  throw new Fault(
    "invalid_argument",
    `invalid contextId ${JSON.stringify(contextId)}: task ${taskId} is in another context; leave contextId out`,
  );
}

/** Prefix of the signals that note which question a message answers. No agent waits for them. */
function noteOf({ messageId }: WireMessage): string {
  return `a2a/${shortDigest(messageId)}/`;
}

/** Notes in the log of the run, before the answer, which question a message answers. */
async function noteAnswer(run: RunHandle, message: WireMessage, approvalId: string): Promise<void> {
  await run.signal(`${noteOf(message)}${approvalId}`, null, { id: noteOf(message) });
}

/** Ids of the questions that a message has answered. `undefined` if it has answered none. */
async function answeredWith(run: RunHandle, message: WireMessage): Promise<ReadonlySet<string> | undefined> {
  const prefix = noteOf(message);
  const found = new Set<string>();
  for await (const event of run.events({ follow: false, types: ["task_signal"] }))
    if (event.type === "task_signal" && event.data.name.startsWith(prefix))
      found.add(event.data.name.slice(prefix.length));
  return found.size === 0 ? undefined : found;
}
