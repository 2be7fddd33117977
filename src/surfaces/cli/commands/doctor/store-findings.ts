import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { reeveHome } from "../../../../capabilities/files/reeve-home.ts";
import { Fault, withoutSecrets } from "../../../../kernel/index.ts";
import { inspectStore, sqlitePath, type InspectedStore } from "../../../../runtime/index.ts";
import { StoreList } from "../../../../workspace/files/index.ts";
import { defaultStore } from "../../setup/default-store.ts";
import { refuseLink, storeIdentity } from "../../setup/own-store.ts";
import { byteWords, counted, shellWord } from "../../terminal/format.ts";
import { sentence, type Found } from "./finding.ts";

type SqliteStore = Extract<InspectedStore, { kind: "sqlite" }>;
type PostgresStore = Extract<InspectedStore, { kind: "postgres" }>;

/** The findings about a store, and the newest time that the store has recorded. */
interface StoreFound {
  readonly findings: readonly Found[];
  readonly newest: number | null;
}

/** Maximum size of a store file that is read completely without `--full`. */
const maxCheckedBytes = 1_000_000_000;
/** Time that a server may take to answer. */
const timeoutMs = 5_000;

/** Checks version, damage, size, locks and owner of a store. The store is not changed. */
export async function storeFindings(address: string, isFull: boolean): Promise<StoreFound> {
  const record = storeIdentity;
  const most = isFull ? Number.MAX_SAFE_INTEGER : maxCheckedBytes;
  let store: InspectedStore;
  try {
    if (address === defaultStore) refuseLink(resolve(sqlitePath(address) ?? ""));
    store = await inspectStore(address, { record, maxCheckedBytes: most, timeoutMs });
  } catch (error) {
    return { findings: [unreadable(Fault.from(error), address)], newest: null };
  }
  if (store.kind === "postgres") return { findings: postgresFindings(store, address), newest: null };
  return {
    findings: [...sqliteFindings(store), ...(await ownerFindings(store, address))],
    newest: store.newestRunAt,
  };
}

function unreadable(fault: Fault, address: string): Found {
  const { code, message } = fault;
  if (code === "not_found" && address === defaultStore)
    return { state: "ok", text: "This folder has no store yet; the first run creates it." };
  return { state: "error", text: sentence(withoutSecrets(message)), fix: fixOf(fault, address) };
}

/** Returns the command that helps if a store cannot be read. */
function fixOf({ code, details }: Fault, address: string): string {
  const path = address.replace(/^sqlite:/u, "");
  switch (code) {
    case "dependency_missing":
      return "npm install pg";
    case "version_mismatch":
      // A newer format needs a newer version. Nothing opens one of a development version.
      return Number(details?.["format"]) > Number(details?.["newest"])
        ? "npm install reeve@latest"
        : "reeve run --store sqlite:PATH";
    case "store_corrupt":
      return `mv ${shellWord(path)} ${shellWord(`${path}.damaged`)}`;
    case "permission_denied":
      return `ls -ld .reeve ${shellWord(path)}`;
    case "store_unavailable":
      return address.startsWith("sqlite:") ? `fuser -v ${shellWord(path)}` : reachable(address);
    default:
      return "reeve doctor --store sqlite:PATH";
  }
}

/** Returns the command that asks whether a PostgreSQL server answers. */
function reachable(address: string): string {
  const { hostname, port } = URL.canParse(address) ? new URL(address) : { hostname: "", port: "" };
  return `pg_isready -h ${shellWord(hostname === "" ? "127.0.0.1" : hostname)} -p ${port === "" ? "5432" : port}`;
}

function sqliteFindings(store: SqliteStore): readonly Found[] {
  const { path, bytes, logBytes, runs, format, newest, damage, users, workers } = store;
  const found: Found[] = [];
  const size = `${byteWords(bytes)}${logBytes === 0 ? "" : ` and a log of ${byteWords(logBytes)}`}`;
  found.push({
    state: "ok",
    text: `${path} has ${counted(runs)} ${runs === 1 ? "run" : "runs"}, ${size}, and the stored format ${format}.`,
  });
  if (format < newest) found.push(needsUpgrade(newest, `sqlite:${path}`));
  if (damage === null)
    found.push({
      state: "note",
      text: `It is larger than ${byteWords(maxCheckedBytes)} and was not checked for damage.`,
      fix: "reeve doctor --full",
    });
  else if (damage.length > 0)
    found.push({
      state: "error",
      text: `It is damaged: ${damage.join("; ")}.`,
      fix: `sqlite3 ${shellWord(path)} .recover | sqlite3 RECOVERED.db`,
    });
  else found.push({ state: "ok", text: "The check of SQLite has found no damage." });
  if (users !== null && users.length > 0) {
    const words = users.map(({ pid, isWriting }) => `${pid}${isWriting ? " (writes)" : ""}`);
    found.push({ state: "ok", text: `Other processes have it open: ${words.join(", ")}.` });
  }
  const { files, live } = workers;
  if (files > 0)
    found.push({
      state: "ok",
      text: `${counted(files)} ${files === 1 ? "worker has a lock file" : "workers have lock files"}${live === null ? "" : `, and ${counted(live)} of them ${live === 1 ? "is" : "are"} alive`}.`,
    });
  return found;
}

function needsUpgrade(newest: number, address: string): Found {
  return {
    state: "error",
    text: `This version of Reeve writes the stored format ${newest} and does not open the store.`,
    fix: `reeve store upgrade --store ${shellWord(withoutSecrets(address))}`,
  };
}

/** Checks whether commands execute the runs of the store. They do this only for stores that the user owns. */
async function ownerFindings({ path, record }: SqliteStore, address: string): Promise<readonly Found[]> {
  const known = await new StoreList(reeveHome()).find(record);
  if (known?.path === realpathSync(path)) return [];
  const why =
    known === undefined
      ? "No command of yours created this store, so it may have come with the folder"
      : `This store was used at ${known.path} before`;
  return [
    {
      state: "warning",
      text: `${why}; reeve run and reeve serve do not execute its runs until you accept it.`,
      fix: address === defaultStore ? "reeve trust" : `reeve trust --store ${shellWord(address)}`,
    },
  ];
}

/** Maximum allowed difference between the clocks of server and machine. */
const maxAheadMs = 2_000;

function postgresFindings(store: PostgresStore, url: string): readonly Found[] {
  const { address, schema, server, encoding, format, newest, bytes, clockAheadMs } = store;
  const found: Found[] = [];
  found.push({
    state: "ok",
    text: `PostgreSQL ${server} at ${address} answers; the database has ${byteWords(bytes)} and the encoding ${encoding}.`,
  });
  if (format === 0)
    found.push({ state: "note", text: `The schema ${schema} has no store yet; the first run creates it.` });
  else
    found.push({ state: "ok", text: `The store in the schema ${schema} has the stored format ${format}.` });
  if (format > 0 && format < newest) found.push(needsUpgrade(newest, url));
  if (Math.abs(clockAheadMs) > maxAheadMs)
    found.push({
      state: "warning",
      text: `The clock of the server is ${Math.abs(clockAheadMs)} ms ${clockAheadMs > 0 ? "ahead of" : "behind"} this machine; workers judge leases by it.`,
      fix: "sudo timedatectl set-ntp true",
    });
  return found;
}
