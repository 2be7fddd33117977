// How costs grow with the size of a session, a run, a store and an audience. Each row is measured at two sizes in one process; the exponent
// is 0 for a cost that does not depend on the size, and 1 for one that is proportional to it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openRuntime, sha256 } from "reeve";
import {
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  Priority,
  type Commit,
  type HostedAgent,
  type MessageBatch,
  type RunQuery,
  type RunRecord,
  type Runtime,
  type SessionChange,
  type SessionId,
  type Store,
} from "reeve/kernel";
import { sqliteStore } from "reeve/sqlite";
import { cpuMs } from "./cpu-time.ts";
import { median, type Row } from "./row.ts";

/** What a row compares: the processor time of the same work at two sizes. */
interface Growth {
  readonly name: string;
  readonly sizes: readonly [number, number];
  /** Milliseconds at each of the sizes. */
  readonly took: readonly [number, number];
  /** Most milliseconds at the larger size. */
  readonly atMostMs?: number;
  /** Highest exponent. */
  readonly exponent: number;
}

export async function* rows(): AsyncIterable<Row> {
  const folder = mkdtempSync(join(tmpdir(), "reeve-growth-"));
  try {
    yield* forks(folder);
    yield* pages(folder);
    yield* lists(folder);
    yield* children(folder);
    yield* watchers(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function* growthRows({ name, sizes, took, atMostMs, exponent }: Growth): Iterable<Row> {
  const [small, large] = sizes.map((size) => size.toLocaleString("en"));
  yield {
    name: `${name}, ${large}`,
    value: took[1],
    unit: "ms",
    against: null,
    goal: atMostMs === undefined ? null : { atMost: atMostMs },
  };
  yield {
    name: `${name}, exponent ${small} to ${large}`,
    value: Math.log(took[1] / took[0]) / Math.log(sizes[1] / sizes[0]),
    unit: "",
    against: null,
    goal: { atMost: exponent },
  };
}

/** Entries of the longest session. Writing them takes most of the benchmark's time. */
const mostEntries = Number(process.env["REEVE_BENCH_ENTRIES"] ?? 1_000_000);
/** Runs in the longest list. */
const mostRuns = Number(process.env["REEVE_BENCH_RUNS"] ?? 100_000);

const agentId = formatAgentId({ name: "grown" });
/** A user's message, a tool call, its result and an answer: what an invocation adds at once. */
const messagesPerInvocation = 4;
const invocationsPerWrite = 1_000;

async function withStore<Result>(
  path: string,
  work: (runtime: Runtime, store: Store) => Promise<Result>,
): Promise<Result> {
  const store = await sqliteStore({ path, hash: sha256, durability: "normal" });
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  try {
    return await work(runtime, store);
  } finally {
    await runtime.close();
  }
}

/** Fills a session as its invocations would have done. */
async function fill(store: Store, sessionId: SessionId, entries: number): Promise<void> {
  let parentId: string | null = null;
  let changes: SessionChange[] = [];
  for (let first = 0; first < entries; first += messagesPerInvocation) {
    const runId = formatRunId(`${sessionId}-${first}`);
    const messages = Array.from({ length: messagesPerInvocation }, (_, index) => ({
      role: index % 2 === 0 ? ("user" as const) : ("assistant" as const),
      content: [{ type: "text" as const, text: `Message ${first + index} of some length. `.repeat(5) }],
    }));
    const batch: MessageBatch = {
      runId,
      taskId: formatTaskId(0),
      at: first,
      parentId,
      stem: `${runId}/t0`,
      from: 0,
      messages,
    };
    changes.push({ type: "say", sessionId, agentId, batch, visibility: "visible" });
    parentId = `${batch.stem}/${messagesPerInvocation - 1}`;
    if (changes.length === invocationsPerWrite || first + messagesPerInvocation >= entries) {
      await store.sessions.apply(changes);
      changes = [];
    }
  }
}

/** The median of several rounds, after one that fills caches. */
async function medianMs(rounds: number, work: (round: number) => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round <= rounds; round++) times.push(await cpuMs(() => work(round)));
  return median(times.slice(1));
}

/** The processor clock is too coarse for one short call. */
async function shortMs(work: () => Promise<unknown>): Promise<number> {
  const calls = 20;
  const repeated = async (): Promise<void> => {
    for (let call = 0; call < calls; call++) await work();
  };
  return (await medianMs(5, repeated)) / calls;
}

/** `sessions.fork` of a whole conversation. */
async function* forks(folder: string): AsyncIterable<Row> {
  const sizes = [2_000, 20_000] as const;
  const took = await withStore(join(folder, "forks.db"), async (runtime, store) => {
    const times: number[] = [];
    for (const size of sizes) {
      const sessionId = formatSessionId(`fork-${size}`);
      await fill(store, sessionId, size);
      times.push(await medianMs(5, () => runtime.sessions.fork(sessionId)));
    }
    return times as [number, number];
  });
  yield* growthRows({
    name: "fork of a session's entries, SQLite",
    sizes,
    took,
    atMostMs: 200,
    exponent: 1.1,
  });
}

/** Pages of one very long session, and a search in it. */
async function* pages(folder: string): AsyncIterable<Row> {
  const sizes = [mostEntries / 100, mostEntries] as const;
  const all: Record<string, number>[] = [];
  for (const size of sizes)
    all.push(
      await withStore(join(folder, `pages-${size}.db`), async (runtime, store) => {
        const sessionId = formatSessionId("long");
        await fill(store, sessionId, size);
        const middle = `${formatRunId(`${sessionId}-${size / 2}`)}/t0/0`;
        const { sessions } = runtime;
        return {
          "first page of entries": await shortMs(() => sessions.entries(sessionId, { limit: 50 })),
          "page from the middle": await shortMs(() =>
            sessions.entries(sessionId, { limit: 50, after: middle }),
          ),
          "list of sessions with it": await shortMs(() => sessions.list()),
          "search with a page of hits": await shortMs(() => sessions.search("of some length", { sessionId })),
          "search without a hit": await medianMs(1, () => sessions.search("absent", { sessionId })),
        };
      }),
    );
  const [small = {}, large = {}] = all;
  for (const [name, time] of Object.entries(large))
    yield* growthRows({
      name: `session: ${name}, SQLite`,
      sizes,
      took: [small[name] ?? 0, time],
      exponent: name.includes("without a hit") ? 1.1 : 0.1,
    });
}

/** The first page of many runs, by filter. */
async function* lists(folder: string): AsyncIterable<Row> {
  const sizes = [mostRuns / 10, mostRuns] as const;
  const all: Record<string, number>[] = [];
  for (const size of sizes) {
    const path = join(folder, `lists-${size}.db`);
    await withStore(path, (_runtime, store) => createRuns(store, size));
    endRuns(path);
    all.push(
      await withStore(path, async (runtime) => {
        const found: Record<string, number> = {};
        for (const [name, query] of Object.entries(filters))
          found[name] = await shortMs(async () => {
            const { runs } = await runtime.list(query);
            if (runs.length === 0) throw new Error(`no run is listed ${name}`);
          });
        return found;
      }),
    );
  }
  const [small = {}, large = {}] = all;
  for (const [name, time] of Object.entries(large))
    yield* growthRows({
      name: `list of runs ${name}, SQLite`,
      sizes,
      took: [small[name] ?? 0, time],
      exponent: 0.1,
    });
}

const filters: Readonly<Record<string, RunQuery>> = {
  "without a filter": {},
  "by an open status": { status: "pending" },
  "by an ended status": { status: "completed" },
  "by agent": { agentId: "grown-3" },
  "by tenant": { tenantId: "tenant-3" },
  "by user": { userId: "user-3" },
  "by label": { metadata: { team: "team-3" } },
  "by tenant, status and label": {
    tenantId: "tenant-3",
    status: "completed",
    metadata: { team: "team-3" },
  },
  "by label and a rare tenant": { tenantId: "tenant-rare", metadata: { team: "team-0" } },
  "by time": { createdAfter: 1_000, createdBefore: 2_000 },
  "by agent name": { agentName: "grown-3" },
  "by user, status and time": { userId: "user-3", status: "completed", createdAfter: 1_000 },
  "by cost": { sort: "costliest" },
  "by cost, of a user": { sort: "costliest", userId: "user-3" },
};

async function createRuns(store: Store, count: number): Promise<void> {
  for (let from = 0; from < count; from += 500)
    await Promise.all(
      Array.from({ length: 500 }, async (_, index) => {
        const number = from + index;
        const run: RunRecord = {
          runId: formatRunId(`listed-${number}`),
          kind: "invocation",
          agentId: formatAgentId({ name: `grown-${number % 10}` }),
          sessionId: formatSessionId(`listed-${number}`),
          tenantId: number === 0 ? "tenant-rare" : `tenant-${number % 10}`,
          userId: `user-${number % 100}`,
          priority: Priority.NORMAL,
          agentVersion: null,
          title: `Run ${number}`,
          metadata: { team: `team-${number % 10}` },
          createdAt: number,
          startAt: null,
          recoveries: 0,
        };
        const first: Commit = { number: 0, at: number };
        return store.journal.create(run, first);
      }),
    );
}

/** Ends all runs but 100, as workers would have done: state 3 and the first status, `completed`. */
function endRuns(path: string): void {
  const db = new DatabaseSync(path);
  db.exec("UPDATE runs SET state = 3, ended = 0, ended_at = created_at WHERE id > 100");
  db.close();
}

/** A run that hires so many children at once and joins them. */
async function* children(folder: string): AsyncIterable<Row> {
  const sizes = [1_000, 10_000] as const;
  for (const [store, path] of [
    ["memory", "memory:"],
    ["SQLite", `sqlite:${join(folder, "children.db")}`],
  ] as const) {
    const runtime = await openRuntime({ store: path, unknownPrice: "ignore" });
    const child: HostedAgent = { id: formatAgentId({ name: "child" }), run: async () => "done" };
    runtime.register(child);
    const parent: HostedAgent = {
      id: formatAgentId({ name: "parent" }),
      run: async (ctx) => {
        const handles = [];
        for (let index = 0; index < Number(ctx.input); index++) {
          const spawned = await ctx.spawn(child.id, index);
          if (spawned.kind !== "spawned") throw new Error("the child got no seat");
          handles.push(spawned.handle);
        }
        for (const handle of handles) await ctx.join(handle);
        return "done";
      },
    };
    const took: number[] = [];
    for (const size of sizes)
      took.push(
        await medianMs(2, async () => {
          const run = await runtime.submit(parent, size, { spawnBudget: { maxAgents: size + 1 } });
          const { output, error } = await run.result();
          if (output !== "done") throw new Error(`the run ended with ${JSON.stringify(error)}`);
        }),
      );
    await runtime.close();
    yield* growthRows({
      name: `children of one run, ${store}`,
      sizes,
      took: took as [number, number],
      exponent: 1.1,
    });
  }
}

/** A run of 100 steps that so many readers watch until its end. */
async function* watchers(folder: string): AsyncIterable<Row> {
  const sizes = [100, 1_000] as const;
  const agent: HostedAgent = {
    id: formatAgentId({ name: "watched" }),
    run: async (ctx) => {
      for (let index = 0; index < 100; index++) await ctx.step("work", async () => index);
      return "done";
    },
  };
  const took = await withStore(join(folder, "watchers.db"), async (runtime) => {
    const times: number[] = [];
    for (const size of sizes)
      times.push(
        await medianMs(3, async () => {
          const run = await runtime.submit(agent, null);
          await Promise.all(
            Array.from({ length: size }, async () => {
              for await (const event of run.events()) if (event.type === "run_end") return;
            }),
          );
        }),
      );
    return times as [number, number];
  });
  yield* growthRows({ name: "watchers of one run of 100 steps, SQLite", sizes, took, exponent: 1.1 });
}
