import { batch, computed, signal } from "@preact/signals";
import { announce } from "../base/announce.ts";
import { get, type Query } from "./client.ts";
import { follow } from "./connection.ts";
import type { Approval, Facts, Inbox, Run } from "./types.ts";

/** Which part of the inbox is read. */
export type InboxQuery = Query<"GET", "/api/inbox">;

/** The figures of the runs page. `null` until they are read. */
export const facts = signal<Facts | null>(null);
/** The inbox of this person, and the part of it that was read. `null` until it is read. */
export const inbox = signal<(Inbox & { readonly query: InboxQuery }) | null>(null);
/** Number of questions that wait for this person. `null` until they are read. */
export const waiting = computed(() => inbox.value?.waiting ?? null);
/**
 * The runs with an open question for this person, and the runs in which this person has closed or snoozed all
 * questions.
 */
export const asking = computed((): Asking => ({
  runs: new Set(inbox.value?.asking),
  setAside: new Set(inbox.value?.setAside),
}));
/** The titles of the runs with questions, by their ids. */
export const titles = signal<ReadonlyMap<string, string>>(new Map());
/** The last change of a run, for views that show it. */
export const changedRun = signal<Run | null>(null);
/**
 * Number of times that the server has answered again after an interruption. Lists read their data again when it
 * changes.
 */
export const connected = signal(0);

/** Which runs wait for this person. */
export interface Asking {
  readonly runs: ReadonlySet<string>;
  readonly setAside: ReadonlySet<string>;
}

const settleMs = 400;
let timer: ReturnType<typeof setTimeout> | undefined;
let wanted: InboxQuery = {};

/** Follows the changes of all runs for as long as the page is open. */
export function followRuns(): void {
  const stop = new AbortController();
  void follow({
    address: () => "/api/stream",
    signal: stop.signal,
    onMessage: ({ name, data }) => {
      if (name === "ready") connected.value++;
      else changedRun.value = data as Run;
      refreshSoon();
    },
  });
}

/** From now on, reads another part of the inbox. */
export function wantInbox(query: InboxQuery): void {
  if (JSON.stringify(query) === JSON.stringify(wanted)) return;
  wanted = query;
  void refresh();
}

/** Reads figures and questions again, at most a few times per second. */
export function refreshSoon(): void {
  // Until the inbox is read, no list knows which runs wait for the person.
  const delay = inbox.peek() === null ? 0 : settleMs;
  timer ??= setTimeout(() => {
    timer = undefined;
    void refresh();
  }, delay);
}

/** Reads figures and questions again. Resolves when they are shown. */
export async function refresh(): Promise<void> {
  const query = wanted;
  try {
    const [figures, read] = await Promise.all([get("/api/facts"), get("/api/inbox", { query })]);
    // Another part was wanted meanwhile, which is being read.
    if (query !== wanted) return;
    sayNew(query, read.questions.items);
    batch(() => {
      facts.value = figures;
      inbox.value = { ...read, query };
    });
    await readTitles(read.questions.items);
  } catch {
    // The stream reports that the server does not answer, and the next change reads again.
    return;
  }
}

/** Reads the titles of runs that are not known yet. */
async function readTitles(open: readonly Approval[]): Promise<void> {
  const unknown = new Set(open.map(({ runId }) => runId).filter((id) => !titles.peek().has(id)));
  if (unknown.size === 0) return;
  const read = await Promise.all(
    [...unknown].map((runId) => get("/api/runs/{runId}", { params: { runId } })),
  );
  titles.value = new Map([
    ...titles.peek(),
    ...read.map(({ runId, title, agentId }) => [runId, title ?? agentId] as const),
  ]);
}

/**
 * Announces a new question. After a change to another part of the inbox, the questions of this part are not treated
 * as new.
 */
function sayNew(query: InboxQuery, open: readonly Approval[]): void {
  const before = inbox.peek();
  if (before === null || before.query !== query) return;
  const known = new Set(before.questions.items.map(({ runId, approvalId }) => `${runId} ${approvalId}`));
  const fresh = open.find(({ runId, approvalId }) => !known.has(`${runId} ${approvalId}`));
  if (fresh !== undefined) announce(`${fresh.agentId} waits for you: ${fresh.toolName}`);
}
