import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Fault, type Runtime, type Store } from "../../../kernel/index.ts";
import { openRuntime } from "../../../assembly/open-runtime.ts";
import { openStore } from "../../../runtime/index.ts";
import { createServer, listen } from "../../server/index.ts";
import type { OpenParts } from "../setup/open-parts.ts";
import { builtPage } from "../setup/page-folder.ts";
import { idleEngine } from "../setup/idle-engine.ts";
import { WorkerProcess } from "./demo-processes.ts";
import { writeProject } from "./demo-project.ts";
import { demoAgents, demoFiles, type DemoAgents, type DemoFiles } from "./demo-worker.ts";

export interface StageOptions {
  readonly port: number;
  readonly paceMs: number;
  /** Whether the files of the demo are kept. */
  readonly keeps: boolean;
  /** Receives errors that callers of the server see only as `internal`. */
  readonly onError: (error: Fault) => void;
}

/** The server of the demo, with its store and its agents. The server executes no runs. */
export interface Stage extends DemoFiles {
  readonly folder: string;
  readonly url: string;
  /** Whether the page is built. */
  readonly hasPage: boolean;
  readonly runtime: Runtime;
  readonly records: Store;
  readonly agents: DemoAgents;
}

/** Creates a folder with the project and the store, and serves the store. Each opened part is added to `open`. */
export async function openStage(
  { port, paceMs, keeps, onError }: StageOptions,
  open: OpenParts,
): Promise<Stage> {
  const folder = await openFolder(keeps, open);
  const files = demoFiles(folder);
  await writeProject(files.root);
  const records = await openStore(files.store);
  const runtime = open.add(await openRuntime({ store: records, engine: idleEngine, keepAlive: true }));
  const agents = demoAgents({ ...files, worker: "server", paceMs });
  const page = builtPage();
  const server = createServer(runtime, {
    agents: Object.values(agents),
    // Only programs of this machine reach the server, and its agents reach only the folder of the demo.
    tokens: null,
    ...(page !== undefined && { page }),
    onError,
  });
  const listening = open.add(await listen(server, { port, closeGraceMs: 500 }));
  return {
    ...files,
    folder,
    url: `${listening.url}/`,
    hasPage: page !== undefined,
    runtime,
    records,
    agents,
  };
}

/** Creates the folder of a demo. The folder is deleted at the end unless `keeps` is `true`. */
export async function openFolder(keeps: boolean, open: OpenParts): Promise<string> {
  try {
    const folder = await mkdtemp(join(tmpdir(), "reeve-demo-"));
    // A git command that an interrupt leaves behind may still write into the folder for a moment.
    const remove = { recursive: true, force: true, maxRetries: 10, retryDelay: 100 } as const;
    open.add({ close: async () => (keeps ? undefined : rm(folder, remove)) });
    return folder;
  } catch (error) {
    throw new Fault(
      "store_unavailable",
      `no folder can be created in ${tmpdir()}: ${(error as Error).message}; set TMPDIR to a folder that can be written`,
      { cause: error },
    );
  }
}

/** Starts the two workers. Each worker is added to `open` before it is ready. */
export async function startWorkers(
  { folder }: Stage,
  paceMs: number,
  open: OpenParts,
): Promise<readonly WorkerProcess[]> {
  const workers = ["worker-a", "worker-b"].map((worker) =>
    open.add(new WorkerProcess({ folder, worker, paceMs })),
  );
  await Promise.all(workers.map((worker) => worker.ready()));
  return workers;
}
