import type {
  Event,
  HostedAgent,
  JsonValue,
  RunHandle,
  Runtime,
  SubmitOptions,
} from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { findRun } from "../runtime/find-run.ts";
import { readAll, until } from "../runtime/runtime-setup.ts";
import type { twoStores } from "../runtime/two-stores.ts";

type OpenStore = Awaited<ReturnType<(typeof twoStores)[number][1]>>;

/** A run that the first runtime has left and that a second runtime on the same store executes. */
export interface Reopened extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly run: RunHandle;
  readonly events: () => Promise<readonly Event[]>;
}

/**
 * Submits the agent, closes the runtime after an event that matches, and opens a second runtime that executes the run.
 */
export async function reopen(
  open: OpenStore,
  agent: HostedAgent,
  fits: (event: Event) => boolean,
  input: JsonValue = "Go.",
  options: SubmitOptions = {},
): Promise<Reopened> {
  const firstStore = await open();
  const first = await createRuntime({ store: firstStore });
  const { runId } = await first.submit(agent, input, options);
  await until(async () => (await readAll(firstStore, runId)).some((event) => fits(event)));
  await first.close();
  const store = await open();
  const runtime = await createRuntime({ store });
  runtime.register(agent);
  const run = await findRun(runtime, { runId });
  const events = (): Promise<readonly Event[]> => readAll(store, runId);
  return { runtime, run, events, [Symbol.asyncDispose]: () => runtime.close() };
}
