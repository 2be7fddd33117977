import { batch, computed, signal } from "@preact/signals";
import { announce } from "../base/announce.ts";
import { get } from "./client.ts";
import { follow } from "./connection.ts";
import type { Approval, DeadLetter, Facts, HiddenItem, Run } from "./types.ts";

/** The figures of the runs page. `null` until they are read. */
export const facts = signal<Facts | null>(null);
/** The questions to a person, the oldest first. `null` until they are read. */
export const approvals = signal<readonly Approval[] | null>(null);
/** The ids of the runs that have such a question. */
export const asking = computed(
  (): ReadonlySet<string> => new Set(approvals.value?.map(({ runId }) => runId)),
);
/** The runs that stopped at their allowance, those that are paused as crash loops, and the messages that could not be delivered. */
export const stopped = signal<readonly Run[]>([]);
export const looping = signal<readonly Run[]>([]);
export const letters = signal<readonly DeadLetter[]>([]);
/** What this person has taken off the inbox. */
export const hidden = signal<readonly HiddenItem[]>([]);
/** The titles of the runs with questions, by their ids. */
export const titles = signal<ReadonlyMap<string, string>>(new Map());
/** The last change of a run, for views that show it. */
export const changedRun = signal<Run | null>(null);
/** Counts the times that the server answered again. Lists read themselves again after a change. */
export const connected = signal(0);

const settleMs = 400;
let timer: ReturnType<typeof setTimeout> | undefined;

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

/** Reads figures and questions again, at most a few times per second. */
export function refreshSoon(): void {
  timer ??= setTimeout(() => {
    timer = undefined;
    void refresh();
  }, settleMs);
}

async function refresh(): Promise<void> {
  try {
    const [read, { approvals: open }, { runs }, { runs: paused }, { deadLetters }, put] = await Promise.all([
      get("/api/facts"),
      get("/api/approvals", { query: { limit: 200 } }),
      get("/api/runs", { query: { status: ["budget_exhausted", "deadline_exceeded"], limit: 100 } }),
      get("/api/runs", { query: { status: ["paused"], limit: 100 } }),
      get("/api/dead-letters"),
      get("/api/inbox/hidden"),
    ]);
    sayNew(open);
    batch(() => {
      facts.value = read;
      approvals.value = open;
      stopped.value = runs;
      looping.value = paused.filter(({ waitsFor }) => waitsFor.includes("crash_loop"));
      letters.value = deadLetters;
      hidden.value = put.hidden;
    });
    await readTitles(open);
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

function sayNew(open: readonly Approval[]): void {
  if (approvals.value === null) return;
  const known = new Set(approvals.value.map(({ runId, approvalId }) => `${runId} ${approvalId}`));
  const fresh = open.find(({ runId, approvalId }) => !known.has(`${runId} ${approvalId}`));
  if (fresh !== undefined) announce(`${fresh.agentId} waits for you: ${fresh.toolName}`);
}
