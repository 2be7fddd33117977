import type { JsonValue } from "../../kernel/index.ts";
import type { MessageSteps } from "./messages.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import type { Due } from "../task/wait-registry.ts";
import { signalWait } from "../journal/wait-names.ts";

/** What resolves the name. A timeout is a step of its own: the clock that a replay goes by is the first run's. */
export async function waitForSignal(
  steps: StepExecutor,
  messages: MessageSteps,
  name: string,
  timeoutMs: number | undefined,
): Promise<JsonValue | undefined> {
  const due = timeoutMs === undefined ? undefined : await messages.dueIn(timeoutMs);
  return (await waitForName(steps, messages, signalWait(name), due)).value;
}

/** A journaled wait for a name, or for a time to come. */
export function waitForName(
  steps: StepExecutor,
  messages: MessageSteps,
  name: string,
  due: Due | undefined,
): Promise<{ readonly value?: JsonValue }> {
  return steps.run<{ readonly value?: JsonValue }>(steps.identify("wait", name, null), async () => {
    const came = await messages.cameFor(name, due);
    return came === undefined ? {} : { value: came };
  });
}
