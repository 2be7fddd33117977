import { openRuntime, openStore, sha256 } from "../../src/entries/index.ts";
import type { Event, JsonValue, RunHandle, RunId, RunSnapshot, Store } from "../../src/kernel/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { runIdWithin } from "../../src/runtime/index.ts";
import { company, goldenId, goldenOptions, goldenRuns, type Desk } from "./company.ts";

/** One fact about a run. A file of findings has one fact per line. */
export interface Finding {
  readonly run: string;
  readonly what: string;
  readonly value: JsonValue;
}

/**
 * Reads facts from the file without executing runs: events, the result of checking the hash chain, and the list of runs.
 */
export async function findingsIn(path: string): Promise<readonly Finding[]> {
  const store = await openStore(`sqlite:${path}`, { hash: sha256, clock: new FakeClock() });
  try {
    const found: Finding[] = [];
    for (const run of await runsIn(store)) {
      const runId = await idIn(store, run);
      const events = await eventsIn(store, run);
      found.push(...events.map((event) => ({ run, what: "event", value: plain(event) })));
      found.push({ run, what: "verdict", value: plain(await store.events.verify(runId)) });
    }
    const { runs } = await store.journal.list();
    found.push(...runs.map((each) => ({ run: each.runId, what: "listed", value: plain(each) })));
    return found;
  } finally {
    await store.close();
  }
}

/**
 * Resumes each run and returns facts about it: result, seats, money, and the requests to models, which must not repeat
 * recorded calls.
 */
export async function findingsAfter(path: string): Promise<readonly Finding[]> {
  const clock = new FakeClock();
  const at = company();
  const store = await openStore(`sqlite:${path}`, { hash: sha256, clock });
  const before = new Map<string, readonly Event[]>();
  const runs = await runsIn(store);
  for (const run of runs) before.set(run, await eventsIn(store, run));
  // The clock jumps hours. With the default it would fire thousands of polls on the way.
  const runtime = await openRuntime({ ...goldenOptions(clock, "after"), store, pollMs: 60_000 });
  try {
    const {
      clerk,
      beggar,
      lead,
      panel,
      sleeper,
      durable,
      retried,
      updated,
      undone,
      called,
      calling,
      patched,
      promised,
      tally,
      outsider,
    } = at;
    const agents = [
      clerk,
      beggar,
      lead,
      panel,
      sleeper,
      durable,
      retried,
      updated,
      undone,
      called,
      calling,
      patched,
      promised,
      tally,
      outsider,
    ];
    for (const agent of agents) runtime.register(agent);
    const found: Finding[] = [];
    for (const [run, { goOn }] of Object.entries(goldenRuns)) {
      if (!runs.includes(run)) continue;
      const handle = await runtime.find(await idIn(store, run));
      if (handle === undefined) throw new Error(`run ${run} is not in the golden file`);
      found.push({ run, what: "standing", value: plain(numbersOf(await handle.snapshot())) });
      at.asked.length = 0;
      found.push(...(await cameTo(run, await goOn(handle, { runtime, clock, company: at } satisfies Desk))));
      found.push({ run, what: "asked", value: [...at.asked] });
      const events = await eventsIn(store, run);
      const kept =
        JSON.stringify(events.slice(0, before.get(run)?.length)) === JSON.stringify(before.get(run));
      const { ok } = await store.events.verify(await idIn(store, run));
      found.push({ run, what: "afterwards", value: { kept, ok } });
    }
    return found;
  } finally {
    await runtime.close();
    await store.close();
  }
}

/** Returns the names of the golden runs that a file has. A run that only later formats have may be absent. */
async function runsIn({ journal }: Store): Promise<readonly string[]> {
  const names: string[] = [];
  for (const [name, { since }] of Object.entries(goldenRuns))
    if (since === undefined || (await journal.find(goldenId(name))) !== undefined) names.push(name);
  return names;
}

async function cameTo(run: string, handle: RunHandle): Promise<readonly Finding[]> {
  const { metadata: _metadata, ...whole } = await handle.result();
  // Computed from the events, which `findingsIn` compares.
  const {
    messages: _1,
    steps: _2,
    toolCalls: _3,
    reasoning: _4,
    files: _5,
    pendingApprovals: _6,
    ...result
  } = whole;
  const { money } = numbersOf(await handle.snapshot());
  // S6: the stored id of a run of a tenant ends with a mark of it. The findings have the id that was chosen.
  const runId = handle.runId.replace(/--[\w-]{16}$/u, "");
  return [
    { run, what: "result", value: plain({ ...result, runId }) },
    { run, what: "ledger", value: plain(money) },
  ];
}

/** The parts of seats and money that have a stable meaning, without other counters. */
function numbersOf({ headcount, ledger }: RunSnapshot) {
  const seats = Object.values(headcount.tasks).map(({ taskId, parentId, priority, status, idle }) => ({
    taskId,
    parentId,
    priority,
    status,
    idle,
  }));
  const money = Object.values(ledger.accounts).map(({ taskId, parentId, caps, spent, reserved, lost }) => ({
    taskId,
    parentId,
    caps,
    spent,
    reserved,
    lost,
  }));
  return { seats, money };
}

async function eventsIn(store: Store, run: string): Promise<readonly Event[]> {
  const all: Event[] = [];
  for await (const event of store.events.read(await idIn(store, run))) all.push(event);
  return all;
}

/** S6: returns the stored id of a golden run. The id of a run with a tenant ends with a mark of the tenant. */
async function idIn({ journal }: Store, run: string): Promise<RunId> {
  return (await journal.find(goldenId(run)))?.runId ?? runIdWithin("house", goldenId(run));
}

function plain(value: unknown): JsonValue {
  return JSON.parse(JSON.stringify(value)) as JsonValue;
}

export function textOfFindings(findings: readonly Finding[]): string {
  return findings.map((finding) => `${JSON.stringify(finding)}\n`).join("");
}

export function findingsOfText(text: string): readonly Finding[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Finding);
}
