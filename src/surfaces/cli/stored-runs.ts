import { statSync } from "node:fs";
import { Fault, type RunId, type Store } from "../../kernel/index.ts";
import { openStore } from "../../runtime/index.ts";
import type { Terminal } from "./terminal.ts";

export const defaultStore = "sqlite:.reeve/reeve.db";

export interface StoreOptions {
  readonly store: string;
  /** The variable that holds the audit key. */
  readonly keyEnv?: string;
}

/** Opens a store that is there, lets `use` read it, and closes it. */
export async function withStore<Result>(
  options: StoreOptions,
  terminal: Terminal,
  use: (store: Store) => Promise<Result>,
): Promise<Result> {
  const { store: address, keyEnv } = options;
  const auditKey = keyEnv === undefined ? undefined : keyIn(keyEnv, terminal);
  refuseAbsent(address);
  const store = await openStore(address, auditKey === undefined ? {} : { auditKey });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** Every run of the store, oldest first. */
export async function allRuns({ journal }: Store): Promise<readonly RunId[]> {
  const found: RunId[] = [];
  let after: string | null = null;
  do {
    const { runs, next } = await journal.list({ limit: 500, ...(after === null ? {} : { after }) });
    found.push(...runs.map(({ runId }) => runId));
    after = next;
  } while (after !== null);
  return found.toReversed();
}

/** Opening would make the file: a command that reads must not. */
function refuseAbsent(address: string): void {
  if (address === "memory:") {
    throw new Fault(
      "invalid_argument",
      "a store in memory is seen by its own process alone: name a file, --store sqlite:PATH",
    );
  }
  const path = address.startsWith("sqlite:") ? address.slice("sqlite:".length) : "";
  const file = path === "" ? undefined : statSync(path, { throwIfNoEntry: false });
  if (path !== "" && (file === undefined || (file.isFile() && file.size === 0))) {
    const what = file === undefined ? "there is no store at" : "there is nothing in the file";
    throw new Fault("not_found", `${what} ${path}: name a store with --store sqlite:PATH`);
  }
}

/** In the environment, not among the arguments, which every user of the machine can list. */
function keyIn(name: string, { env }: Terminal): string {
  const key = env[name];
  if (key !== undefined && key !== "") return key;
  throw new Fault("invalid_argument", `--key-env ${name}: there is nothing in the variable ${name}`);
}
