import {
  rootTaskId as root,
  sessionWithin,
  type HistoryKey,
  type RunContext,
  type Turn,
  type TurnOpening,
  type TurnPlan,
} from "../kernel/index.ts";
import type { ReadInput } from "./agent-input.ts";
import { withFormat } from "./answer-format.ts";
import type { Place } from "./closing.ts";
import type { InvocationPlan } from "./invocation-plan.ts";

const none: readonly never[] = [];

/** Determines what an invocation starts with. It is synchronous unless instructions or a history have to be loaded. */
export function planTurn(
  { agent, instructions, history, toolSpecs }: InvocationPlan,
  ctx: RunContext,
  given: ReadInput,
  place: Place,
  { input, sessionId, channel }: TurnOpening,
): TurnPlan | Promise<TurnPlan> {
  const tools = toolSpecs.of(agent.tools ?? none);
  // Instructions in the input are accepted from a parent task, not from a user.
  const brief = ctx.taskId === root ? undefined : given;
  const planned = (built: string, fromCache: boolean, before = brief?.history): TurnPlan => {
    const text = joined(built, brief?.instructions ?? "");
    const words = given.output === undefined ? text : withFormat(text, given.output);
    const plan = { input, instructions: words, fromCache, tools };
    return before === undefined ? plan : { ...plan, history: [...before] };
  };
  const asked = async (): Promise<TurnPlan> => {
    const { text, fromCache } =
      typeof instructions === "string"
        ? { text: instructions, fromCache: false }
        : await instructions.build({ channel, sessionId, toolNames: tools.map(({ name }) => name) });
    const key = history && historyKey(ctx, sessionId, place);
    const isKept = key !== undefined && brief?.history === undefined;
    return planned(text, fromCache, isKept ? await history?.read(key) : undefined);
  };
  return typeof instructions === "string" && history === undefined ? planned(instructions, false) : asked();
}

function joined(text: string, orders: string): string {
  return text === "" || orders === "" ? `${text}${orders}` : `${text}\n\n${orders}`;
}

/**
 * The key under which an application's own history store keeps a conversation, or `undefined` if it is not to be kept.
 * As in the runtime's sessions, workers and users are kept apart.
 */
export function historyKey(
  { agentId }: RunContext,
  sessionId: Turn["sessionId"],
  { number }: Place,
): HistoryKey | undefined {
  if (sessionId === null) return undefined;
  return { agentId, sessionId: number === 0 ? sessionId : sessionWithin(sessionId, `${number}`) };
}
