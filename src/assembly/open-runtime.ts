import { findNamedModel, priceCatalog } from "../capabilities/index.ts";
import { Fault, type Client, type CronReader, type Runtime } from "../kernel/index.ts";
import { schemaProblems } from "./answer-shape.ts";
import { unsupportedNode } from "./node-version.ts";
import type { ClientOptions, RuntimeOptions } from "../runtime/index.ts";

/** The price catalog. All runtimes share it, because it never changes and is read only once. */
const prices = priceCatalog();

/** Loads the package croner when a cron expression or local time is first read. */
async function cron(): Promise<CronReader> {
  const { cronReader } = await import("../capabilities/schedules/cron-reader.ts");
  return cronReader;
}

/** Deletes the home folder of a hired agent. */
async function removeHome(name: string): Promise<void> {
  const { removePrivateHome } = await import("../capabilities/hire/private-home.ts");
  await removePrivateHome(name);
}

/**
 * Opens a runtime on a store, and resumes the runs in the store that no other worker executes.
 *
 * The import is dynamic so that a program that only defines agents and tools does not load the worker. Node
 * compiles and evaluates these modules at the first call. Time saved, according to `npm run bench -- tools`, row
 * "import of reeve, fresh process": 29 %.
 */
export async function openRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  const problem = unsupportedNode(process.versions.node);
  if (problem !== undefined) throw new Fault("unsupported", problem);
  const { createRuntime } = await import("../runtime/local-runtime.ts");
  const checkSchema = schemaProblems;
  return createRuntime({
    prices,
    resolveModel: findNamedModel,
    cron,
    checkSchema,
    removeHome,
    ...options,
  });
}

/**
 * Opens a client on the store of workers. The client starts, signals, reads and cancels runs, but executes none. It
 * registers no worker and hosts no agents, so a web server or a script does not need the code of the workflows.
 *
 * @example
 * ```ts
 * import { openClient } from "reeve";
 *
 * await using client = await openClient({ store: "sqlite:./reeve.db" });
 * const run = await client.start("order", { orderId: "7" }, { runId: "run_order-7" });
 * await run.signal("paid", { cents: 900 });
 * const { status, output } = await run.result();
 * ```
 */
export async function openClient(options: ClientOptions): Promise<Client> {
  const problem = unsupportedNode(process.versions.node);
  if (problem !== undefined) throw new Fault("unsupported", problem);
  const { createClient } = await import("../runtime/store-client.ts");
  const checkSchema = schemaProblems;
  return createClient({ checkSchema, ...options });
}

let openedDefault: Promise<Runtime> | undefined;

/**
 * Returns the runtime for agents that are invoked without one. It is opened on first use, stores everything in
 * memory, and exists until the process ends. It does not keep the process alive. Therefore it never removes a
 * waiting run from memory, because the poll that would find the run again does not keep the process alive either.
 * To limit memory in a server, an ended run is deleted after a minute, and an unnamed session an hour after its
 * last message.
 */
export function defaultRuntime(): Promise<Runtime> {
  return (openedDefault ??= openRuntime({
    keepAlive: false,
    sameName: "replace",
    keepEndedRunsMs: 60_000,
    keepUnnamedSessionsMs: 3_600_000,
    suspendAfterMs: Number.MAX_SAFE_INTEGER,
  }));
}
