import {
  assertJson,
  Fault,
  maxStateBytes,
  rootTaskId,
  stateRecord,
  type JsonValue,
  type RunFlow,
} from "../../kernel/index.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import type { TaskRunner } from "../task/task-runner.ts";

/** L19: reads the state of the object key to which the run belongs. The first read is recorded. */
export async function readObjectState(steps: StepExecutor): Promise<JsonValue | undefined> {
  const { runner } = steps;
  const place = objectOf(runner, "ctx.objectState()");
  const step = steps.identify("value", "object state", null);
  const { value } = await steps.run<{ readonly value?: JsonValue }>(step, async (open) => {
    const { worker, host, activity, log } = runner;
    const reading = worker.store.records.get({ ...stateRecord(place), tenantId: host.tenantId });
    const found = await activity.pauseFor(open.cancelScope, log.reading(reading));
    return found === undefined ? {} : { value: found.value };
  });
  return value;
}

/** L19: emits the event whose commit stores the state. */
export function setObjectState(steps: StepExecutor, state: JsonValue | undefined): void {
  const { name: object, key, isShared } = objectOf(steps.runner, "ctx.setState()");
  const where = `the state of object ${object}`;
  if (isShared === true)
    throw new Fault(
      "invalid_argument",
      `ctx.setState() was called in a shared handler of object ${object}, which may only read; use a handler without shared()`,
    );
  steps.requireIdle("ctx.setState()");
  if (state !== undefined) {
    assertJson(state, where);
    const bytes = Buffer.byteLength(JSON.stringify(state));
    if (bytes > maxStateBytes)
      throw new Fault(
        "too_large",
        `${where} is too large: it has ${bytes} bytes, and a key holds at most ${maxStateBytes}; split it over several keys, or store a reference`,
        { details: { bytes, max: maxStateBytes } },
      );
  }
  // The code may change its value before the commit.
  const data = { object, key, ...(state !== undefined && { state: structuredClone(state) }) };
  steps.emit({ type: "state_changed", data });
}

/** Returns the object to which the run belongs. Throws in a child task, which is not a call of the object. */
function objectOf({ host, taskId }: TaskRunner, call: string): NonNullable<RunFlow["object"]> {
  if (host.flow?.object !== undefined && taskId === rootTaskId) return host.flow.object;
  throw new Fault(
    "invalid_argument",
    `${call} was called in a task that is no call of an object; use runtime.object() or ctx.object() to call one`,
  );
}
