import { join } from "node:path";
import type { Agent } from "../../../assembly/agent.ts";
import { Fault } from "../../../kernel/index.ts";
import { openRuntime } from "../../../assembly/open-runtime.ts";
import { demoCompany, type CompanyOptions } from "./demo-company.ts";
import { demoDesk, type DemoDesk } from "./demo-desk.ts";
import { demoPrices, ProviderBook } from "./demo-model.ts";

/** The files of one demo. */
export interface DemoFiles {
  readonly store: `sqlite:${string}`;
  readonly book: ProviderBook;
  /** The folder of the project. */
  readonly root: string;
}

export function demoFiles(folder: string): DemoFiles {
  return {
    store: `sqlite:${join(folder, "reeve.db")}`,
    book: new ProviderBook(join(folder, "provider-book.jsonl")),
    root: join(folder, "tally"),
  };
}

/** The agents of the demo that callers can start. */
export interface DemoAgents extends DemoDesk {
  readonly lead: Agent;
}

/** Returns all agents of the demo that callers can start. */
export function demoAgents(options: CompanyOptions): DemoAgents {
  return { lead: demoCompany(options), ...demoDesk(options) };
}

export interface WorkerOptions {
  readonly folder: string;
  readonly worker: string;
  readonly paceMs: number;
}

/**
 * Executes runs of the demo's store until the process that started this one asks it to stop, or has ended. In both
 * cases the channel between the two processes is closed.
 */
export async function demoWorker({ folder, worker, paceMs }: WorkerOptions): Promise<void> {
  if (process.send === undefined)
    throw new Fault("invalid_argument", "--act is for processes that reeve demo starts; use reeve demo");
  const { store, book, root } = demoFiles(folder);
  const parentGone = new Promise<void>((resolve) => void process.once("disconnect", resolve));
  // Ctrl-C reaches all processes of the terminal. The one that started this one decides.
  process.on("SIGINT", () => undefined);
  process.once("SIGTERM", () => process.disconnect());
  const runtime = await openRuntime({
    store,
    prices: demoPrices,
    workerId: worker,
    keepAlive: true,
    closeGraceMs: 1_000,
  });
  for (const agent of Object.values(demoAgents({ book, root, worker, paceMs }))) runtime.register(agent);
  process.send("ready");
  await parentGone;
  await runtime.close();
}
