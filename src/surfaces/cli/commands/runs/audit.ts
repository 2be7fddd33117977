import {
  type AuditEntry,
  type AuditLog,
  Fault,
  type LogVerdict,
  parseRunId,
  type RunId,
  type Store,
} from "../../../../kernel/index.ts";
import { auditLog } from "../../../../runtime/index.ts";
import { findRunId } from "../../setup/find-run.ts";
import { allRuns, type StoreOptions, withStore } from "../../setup/stored-runs.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface AuditLogOptions extends StoreOptions {
  readonly full?: boolean;
  readonly outside?: boolean;
  readonly json?: boolean;
}

/** Prints who did what in a run. */
export function printAudit(name: string, options: AuditLogOptions, terminal: Terminal): Promise<ExitKind> {
  const { full = false, outside: outsideOnly = false, json = false } = options;
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const runId = await findRunId(store, name, options.store);
    for await (const entry of auditLog(store).read(runId, { full, outsideOnly }))
      await terminal.out(json ? JSON.stringify(entry) : entryLine(entry));
    if (!full) terminal.say("Texts over 500 characters are shortened; --full prints them whole.");
    return "ok";
  });
}

function entryLine({ seq, at, taskId, actor, fromOutside, action, details }: AuditEntry): string {
  const who = fromOutside ? actor : `${actor}/${taskId}`;
  const time = new Date(at).toISOString();
  return [String(seq).padStart(5), time, printable(who), action, printable(JSON.stringify(details))].join(
    "  ",
  );
}

export interface AuditVerifyOptions extends StoreOptions {
  /** Expected heads, each as `RUN=HASH`. */
  readonly head?: readonly string[];
  readonly json?: boolean;
}

interface Finding {
  readonly runId: RunId;
  /** The verdict about the run's log. `undefined` if the run does not exist. */
  readonly verdict: LogVerdict | undefined;
  readonly head: string | undefined;
}

/** Verifies the given runs, or all runs of the store. */
export async function auditVerify(
  names: readonly string[],
  options: AuditVerifyOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const named = names.map(parseRunId);
  const heads = new Map((options.head ?? []).map(parseHead));
  return withStore(options, terminal, async (store) => {
    const runIds = named.length > 0 ? await namedRuns(store, named, options.store) : await allRuns(store);
    const audit = auditLog(store);
    const findings: Finding[] = [];
    for (const runId of new Set([...runIds, ...heads.keys()])) {
      const finding = await verify(store, audit, runId, heads.get(runId));
      findings.push(finding);
      await terminal.out(options.json === true ? jsonLine(finding) : findingLine(finding));
    }
    for (const line of closingWords(findings, options)) terminal.say(line);
    return worst(findings);
  });
}

/**
 * Returns the runs that the given names mean. A name without a run is kept in the list, because the absence of the
 * run is reported as a finding.
 */
function namedRuns(store: Store, names: readonly RunId[], address: string): Promise<readonly RunId[]> {
  return Promise.all(
    names.map((name) =>
      findRunId(store, name, address).catch((error: unknown) => {
        if (Fault.is(error) && error.code === "not_found") return name;
        throw error;
      }),
    ),
  );
}

async function verify(
  { journal }: Store,
  audit: AuditLog,
  runId: RunId,
  head: string | undefined,
): Promise<Finding> {
  const record = await journal.find(runId);
  return { runId, head, verdict: record === undefined ? undefined : await audit.verify(runId, head) };
}

function parseHead(text: string): readonly [RunId, string] {
  const [runId = "", ...rest] = text.split("=");
  const head = rest.join("=");
  if (head !== "") return [parseRunId(runId), head];
  throw new Fault(
    "invalid_argument",
    `invalid --head ${text}: expected RUN=HASH, as audit verify printed it`,
  );
}

/**
 * Whether the finding is a sign of tampering. A run whose head was noted must exist, so its absence is such a sign.
 */
function isTampered({ verdict, head }: Finding): boolean {
  return verdict === undefined ? head !== undefined : !verdict.ok;
}

function worst(findings: readonly Finding[]): ExitKind {
  if (findings.some(isTampered)) return "tampered";
  return findings.some(({ verdict }) => verdict === undefined) ? "notFound" : "ok";
}

function jsonLine({ runId, verdict, head }: Finding): string {
  const found = verdict ?? { ok: false, seq: null, problem: "there is no such run" };
  return JSON.stringify({ runId, ...found, comparedWithHead: head !== undefined });
}

function findingLine({ runId, verdict, head }: Finding): string {
  if (verdict === undefined)
    return `${runId}  ${head === undefined ? "not found" : "GONE: a head was kept, the run is not there"}`;
  if (!verdict.ok) {
    const where = verdict.sessionId === undefined ? `at event ${verdict.seq}` : "in its session";
    return `${runId}  TAMPERED ${where}: ${printable(verdict.problem)}`;
  }
  const { events, head: last, keyed, sinceHead } = verdict;
  const grown = sinceHead === null || sinceHead === 0 ? "" : `  ${sinceHead} since the head given`;
  return `${runId}  ok  ${events} events  head ${last}  ${keyed ? "keyed" : "plain"}${grown}`;
}

/** Explains what the verdicts prove (E1). */
function closingWords(findings: readonly Finding[], { keyEnv }: AuditVerifyOptions): readonly string[] {
  const verified = findings.flatMap(({ verdict, head }) => (verdict?.ok === true ? [{ verdict, head }] : []));
  if (findings.length === 0) {
    const none = "There is no run in this store, so nothing was verified.";
    return [
      none,
      "Runs removed whole are found only against heads kept elsewhere: give them as --head RUN=HASH.",
    ];
  }
  const words = [`${verified.length} of ${findings.length} event logs verify.`];
  if (findings.some(({ verdict }) => verdict?.ok === false && verdict.seq === 0)) {
    const key =
      keyEnv === undefined
        ? "without a key: if the store was written with one, give --key-env"
        : `with the key in ${keyEnv}`;
    words.push(
      `A log that breaks at its first event may have been written with another key. This one was read ${key}.`,
    );
  }
  if (verified.length === 0) return words;
  words.push("An event that was edited, removed or moved would have been found.");
  if (verified.some(({ head }) => head === undefined))
    words.push(
      "Events cut off the end, or a run removed whole, are found only against a head kept elsewhere: keep the heads above and give them back as --head RUN=HASH.",
    );
  if (verified.some(({ verdict }) => (verdict.sinceHead ?? 0) > 0))
    words.push(
      "A log that has grown since its head was kept has lost nothing from before. Keep its new head.",
    );
  if (verified.some(({ verdict }) => !verdict.keyed))
    words.push(
      "The chain has no key: anyone who can write the store can create a chain that verifies. An auditKey that is kept elsewhere prevents this.",
    );
  return words;
}
