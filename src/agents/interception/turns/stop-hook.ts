import {
  describeValue,
  eventDraft,
  Fault,
  type AgentSession,
  type EventDraft,
  type EmittableEvent,
  type RunContext,
  type RunFacts,
  type Usage,
} from "../../../kernel/index.ts";

/** The state of an invocation that is about to end, for stop hooks. */
export interface StopState {
  readonly output: string;
  readonly turns: number;
  readonly usage: Usage;
  /** How often stop hooks have continued the invocation so far. */
  readonly continued: number;
  readonly facts: RunFacts;
}

/**
 * A hook that may make an invocation continue when it is about to end. If it returns a text, the text is sent to
 * the agent, which continues in the same session. If it returns nothing, or a blank text, the invocation ends. The
 * result is journaled, so that the hook is called only once (J1). A thrown error or an invalid result is recorded
 * and has no effect (S4).
 */
export interface StopHook {
  readonly name: string;
  shouldContinue(state: StopState): string | undefined | Promise<string | undefined>;
}

/** Returns the text of the first hook that makes the invocation continue. */
export async function continuationFromHooks(
  hooks: readonly StopHook[],
  ctx: RunContext,
  { output, turns, cumulativeUsage: usage }: AgentSession,
  continued: number,
): Promise<string | undefined> {
  const state: StopState = { output, turns, usage, continued, facts: ctx.facts };
  for (const hook of hooks) {
    const said = await ctx.step<string | null>(`stop hook ${hook.name}`, async (step) => {
      try {
        return wordsOf(hook, await hook.shouldContinue(state));
      } catch (error) {
        const failure = Fault.from(error).toJSON();
        step.ctx.emitEvent(eventDraft("hook_error", { hook: hook.name, failure }));
        return null;
      }
    });
    if (said === null) continue;
    ctx.emitEvent(hookEvent("fired", { hook: hook.name, message: said, continued: continued + 1 }));
    return said;
  }
  return undefined;
}

/** Checks the result of a stop hook. It throws for invalid results, because every further round costs money. */
function wordsOf({ name }: StopHook, said: unknown): string | null {
  if (said === undefined || said === null || said === false) return null;
  if (typeof said === "string") return said.trim() === "" ? null : said;
  throw new Fault(
    "invalid_argument",
    `invalid result ${describeValue(said)} of stop hook ${name}: expected the text to send to the agent, or nothing to let it end`,
  );
}

export function hookEvent(
  name: "fired" | "exhausted",
  data: EventDraft<"architecture_event">["data"]["data"],
): EmittableEvent {
  return eventDraft("architecture_event", { architecture: "agent", name: `stop_hook.${name}`, data });
}
