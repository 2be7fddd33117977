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
} from "../kernel/index.ts";

/** What a stop hook is shown of an invocation that would end. */
export interface StopState {
  readonly output: string;
  readonly turns: number;
  readonly usage: Usage;
  /** How often it has been sent on, from 0. */
  readonly continued: number;
  readonly facts: RunFacts;
}

/**
 * A vote to go on: the text it returns is said to the agent, which works on in the same session; nothing, or a text without words, lets it
 * end. Journaled, so asked once (J1). What it throws is recorded, and counts as nothing (S4); so is what is no text.
 */
export interface StopHook {
  readonly name: string;
  shouldContinue(state: StopState): string | undefined | Promise<string | undefined>;
}

/** The first hook that wants to go on has the word. */
export async function heardFromHooks(
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

/** Callers without types may return anything: what is not heard must not be paid for, round after round. */
function wordsOf({ name }: StopHook, said: unknown): string | null {
  if (said === undefined || said === null || said === false) return null;
  if (typeof said === "string") return said.trim() === "" ? null : said;
  throw new Fault(
    "invalid_argument",
    `the stop hook ${name} returned ${describeValue(said)}: it must be what to say to the agent, or nothing to let it end`,
  );
}

export function hookEvent(
  name: "fired" | "exhausted",
  data: EventDraft<"architecture_event">["data"]["data"],
): EmittableEvent {
  return eventDraft("architecture_event", { architecture: "agent", name: `stop_hook.${name}`, data });
}
