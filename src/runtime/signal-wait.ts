import { assertJson, type EventDraft, type JsonValue, type SignalOptions } from "../kernel/index.ts";
import type { OutgoingMessages } from "./outgoing-messages.ts";
import type { ScopeSteps } from "./scope-steps.ts";
import type { Due } from "./waits.ts";
import { questionAddress, signalWait } from "./wait-name.ts";

/** What resolves the name. A timeout is a step of its own: the clock that a replay goes by is the first run's. */
export async function signalled(
  steps: ScopeSteps,
  messages: OutgoingMessages,
  name: string,
  options: SignalOptions,
): Promise<JsonValue | undefined> {
  if ("question" in options) {
    const { question } = options;
    assertJson(question, `the question for ${name}`);
    const start: EventDraft = { type: "question_ask", data: { name, question } };
    return (await waitUnder(steps, messages, signalWait(name), { question, start })).value;
  }
  const { timeoutMs } = options;
  const due = timeoutMs === undefined ? undefined : await messages.dueIn(timeoutMs);
  return (await waitUnder(steps, messages, signalWait(name), { due })).value;
}

interface WaitOptions {
  readonly due?: Due | undefined;
  /** For a person, told when the wait begins; B5: an open step at such an address stops the clock. */
  readonly question?: JsonValue;
  readonly start?: EventDraft;
}

/** A journaled wait for a name, or for a time to come. */
export function waitUnder(
  steps: ScopeSteps,
  messages: OutgoingMessages,
  name: string,
  { due, question, start }: WaitOptions,
): Promise<{ readonly value?: JsonValue }> {
  const step = steps.identify("wait", name, question ?? null);
  const address = start === undefined ? step.address : questionAddress(step.address);
  return steps.journaled<{ readonly value?: JsonValue }>(
    { ...step, address },
    async () => {
      const came = await messages.cameFor(name, due);
      return came === undefined ? {} : { value: came };
    },
    start,
  );
}
