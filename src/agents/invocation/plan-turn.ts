import {
  contextMessages,
  describeValue,
  Fault,
  HistoryRetention,
  readProperty,
  rootTaskId as root,
  sessionWithin,
  type ChatMessage,
  type HistoryKey,
  type PromptQuery,
  type PromptSource,
  type RunContext,
  type Turn,
  type TurnOpening,
  type TurnPlan,
} from "../../kernel/index.ts";
import type { ReadInput } from "../base/agent-input.ts";
import { withFormat } from "../base/answer-format.ts";
import type { Place } from "./close-invocation.ts";
import type { AgentPlan } from "../definition/agent-plan.ts";
import { callCounts } from "../team/reviewers/review-schedule.ts";
import { recallMemory, type RecalledMemory } from "../context/recalled-memory.ts";

/**
 * Prepares the start of an invocation. It is synchronous, unless instructions or a history must be loaded. `added`
 * is the text that extensions add to the system prompt.
 */
export function planTurn(
  { agent, instructions: own, history, memory, reviewers, toolSpecs, maxToolCallsPerTurn }: AgentPlan,
  ctx: RunContext,
  given: ReadInput,
  place: Place,
  { input, sessionId, channel, path }: TurnOpening,
  added = "",
): TurnPlan | Promise<TurnPlan> {
  const { changes } = ctx;
  const changed = changes?.instructions;
  const isPassedOn = typeof own === "object" && own.acceptsInstructions === true;
  const instructions = changed === undefined || isPassedOn ? own : changed;
  const all = toolSpecs.of(agent.tools ?? none);
  const kept = changes?.tools;
  const tools = kept === undefined ? all : all.filter(({ name }) => kept.includes(name));
  // Instructions in the input are accepted from a parent task, not from a user. A root has those of its submission.
  const brief = ctx.taskId === root ? undefined : given;
  const orders = brief === undefined ? ctx.addedInstructions : (brief.instructions ?? "");
  const { earlier: messages } = given;
  const passed = brief?.history ?? (messages !== undefined && !isInSession(ctx) ? messages : undefined);
  const notes = ctx.folder?.notes ?? "";
  const planned = (
    built: string,
    fromCache: boolean,
    before = passed,
    recalled?: RecalledMemory,
  ): TurnPlan => {
    const text = joined(joined(joined(built, notes), orders), recalled?.text ?? "");
    const words = given.output === undefined ? text : withFormat(text, given.output);
    const plan = {
      input,
      instructions: words,
      fromCache,
      tools,
      maxToolCallsPerTurn,
      ...(reviewers.length > 0 && { carried: callCounts(path) }),
    };
    if (before === undefined && recalled === undefined) return plan;
    return {
      ...plan,
      ...(before !== undefined && { history: [...before] }),
      ...(recalled !== undefined && { events: [recalled.event] }),
    };
  };
  const asked = async (): Promise<TurnPlan> => {
    const toolNames = tools.map(({ name }) => name);
    const { text: built, fromCache } = await builtPrompt(instructions, ctx, {
      channel,
      sessionId,
      toolNames,
      ...(changed !== undefined && { instructions: changed }),
    });
    const text = joined(built, added);
    const key = history === null ? undefined : historyKey(ctx, sessionId, place);
    const isKept = key !== undefined && brief?.history === undefined;
    const read = isKept ? await history?.read(key, ctx.meta) : undefined;
    const before = read && messages !== undefined ? [...read, ...messages] : read;
    const recalled = memory === null ? undefined : await recallMemory(memory, ctx, given.prompt, orders);
    const plan = planned(text, fromCache, before, recalled);
    const earlier = key === undefined ? none : (messages ?? saidInRun(ctx, path));
    return earlier.length === 0 ? plan : { ...plan, earlier };
  };
  if (typeof instructions !== "string" || history !== null || memory !== null) return asked();
  return planned(joined(instructions, added), false);
}

async function builtPrompt(
  instructions: AgentPlan["instructions"],
  { facts, agentId }: RunContext,
  query: PromptQuery,
): Promise<Awaited<ReturnType<PromptSource["build"]>>> {
  if (typeof instructions === "string") return { text: instructions, fromCache: false };
  const isSource = typeof instructions === "object";
  const built: unknown = await (isSource ? instructions.build(query) : instructions(facts));
  if (typeof built === "string") return { text: built, fromCache: false };
  const text = isSource ? readProperty(built, "text") : undefined;
  if (typeof text === "string") return { text, fromCache: readProperty(built, "fromCache") === true };
  const [what, expected] = isSource
    ? ["build()", "a text, or { text, fromCache }"]
    : ["the function", "a text"];
  throw new Fault(
    "invalid_argument",
    `invalid instructions of agent ${agentId}: ${what} returned ${describeValue(built)}; expected ${expected}`,
  );
}

/** Whether the messages of the input are entries of the session as long as the run can be resumed. */
function isInSession({ taskId, meta }: RunContext): boolean {
  return taskId === root && meta.supervision?.retention === HistoryRetention.PERMANENT;
}

/**
 * Returns the messages that earlier tasks of this run have added to the session of a child that remembers. Empty
 * for a root, which has no earlier task.
 */
function saidInRun({ taskId, facts }: RunContext, path: TurnOpening["path"]): readonly ChatMessage[] {
  if (taskId === root) return none;
  return contextMessages(path.filter(({ runId }) => runId === facts.runId));
}

function joined(text: string, orders: string): string {
  return text === "" || orders === "" ? `${text}${orders}` : `${text}\n\n${orders}`;
}

/**
 * Returns the key under which an application's own history store keeps a conversation, or `undefined` if it must
 * not be kept. As in the runtime's sessions, workers and users are separate.
 */
export function historyKey(
  { agentId }: RunContext,
  sessionId: Turn["sessionId"],
  { number }: Place,
): HistoryKey | undefined {
  if (sessionId === null) return undefined;
  return { agentId, sessionId: number === 0 ? sessionId : sessionWithin(sessionId, `${number}`) };
}

const none: readonly never[] = [];
