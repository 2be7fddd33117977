import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { inject, onTestFinished, test } from "vitest";
import { formatRunId, type RunSummary, type Store } from "../../src/kernel/index.ts";
import { CountingServer, traceRun, WorkerProcess, type WorkerEnd } from "../../src/testing/index.ts";
import { crashServer, openCrashStore } from "../crash/crash-store.ts";
import type { LoopPlace } from "../crash/loop-worker.ts";
import type { SiteAddress } from "../crash/site-engine.ts";
import { errandRun } from "../crash/porter.ts";
import { isFull } from "../effort.ts";
import { toolAnswer } from "../crash/workload.ts";
import { FaultyProxy } from "./faulty-proxy.ts";

/** Returns how a worker in this place reaches the engine. `undefined` for the local engine. */
export type AddressOf = (place: number) => SiteAddress | undefined;

const boundMs = 120_000;
const workers = 3;
const kills = Number(process.env["REEVE_SOAK_KILLS"] ?? 300);

/**
 * Whether the first attempt of a call kills its worker. This is true of about every 48th call, so that runs make
 * progress in between. With more kills, some runs would be executed by five processes in a row without a recorded step,
 * and would rightly be paused.
 */
function isChosen(key: string): boolean {
  return createHash("sha256").update(key).digest().readUInt32BE() % 48 === 0;
}

/** A store, and worker processes on it. */
class Yard {
  readonly store: Store;
  readonly #folder: string;
  readonly #file: string;
  readonly #serverUrl: string;
  readonly #addressOf: AddressOf;
  #lives = 0;

  private constructor(folder: string, store: Store, serverUrl: string, addressOf: AddressOf) {
    this.#folder = folder;
    this.#file = join(folder, "store.db");
    this.store = store;
    this.#serverUrl = serverUrl;
    this.#addressOf = addressOf;
  }

  static async open(serverUrl: string, addressOf: AddressOf): Promise<Yard> {
    const folder = await mkdtemp(join(tmpdir(), "reeve-soak-"));
    const store = await openCrashStore(join(folder, "store.db"));
    onTestFinished(async () => {
      await store.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    });
    return new Yard(folder, store, serverUrl, addressOf);
  }

  start(place: LoopPlace, isCorrected: boolean, seat = 0): { caller: string; worker: WorkerProcess } {
    const caller = `life-${++this.#lives}`;
    const site = this.#addressOf(seat);
    const worker = WorkerProcess.start(
      new URL("loop-worker.mjs", inject("crashWorkers")),
      {
        file: this.#file,
        workload: "loop",
        data: { place, isCorrected, ...(site !== undefined && { site: { ...site } }) },
        death: null,
        server: { url: this.#serverUrl, caller },
      },
      join(this.#folder, "compiled"),
    );
    return { caller, worker };
  }

  /** Starts workers one after the other until one ends by itself. Returns the number of workers that were killed. */
  async liveUntilDone(place: LoopPlace, isCorrected: boolean): Promise<number> {
    for (let killed = 0; killed < 20; killed++) {
      const end: WorkerEnd = await this.start(place, isCorrected).worker.endWithin(boundMs);
      if (end.kind === "finished") return killed;
      if (end.kind === "failed" && !end.reason.includes("ended with SIGKILL")) throw new Error(end.reason);
    }
    throw new Error("20 processes in a row were killed");
  }

  async runs(): Promise<readonly RunSummary[]> {
    const found: RunSummary[] = [];
    for (let after: string | null = ""; after !== null;) {
      const page = await this.store.journal.list(after === "" ? {} : { after });
      found.push(...page.runs);
      after = page.next;
    }
    return found;
  }
}

/** The long cases of crash loops and of outside kills. Only `npm run test:soak` and `npm run test:full` run them. */
export function soakCases(addressOf: AddressOf): void {
  test.runIf(isFull).for(["child", "ask", "flow"] as const)(
    "L7: a crash loop in a %s is paused after five deaths, and the corrected run has the result of a run without crashes",
    { timeout: 30 * boundMs },
    async (place, { expect }) => {
      const yard = await Yard.open("", addressOf);
      expect(await yard.liveUntilDone(place, false)).toBe(5);
      expect(await yard.liveUntilDone(place, true)).toBe(0);
      const [loop, calm] = await Promise.all(
        [`loop-${place}`, `calm-${place}`].map((id) => traceRun(yard.store, formatRunId(id))),
      );
      expect(calm).toMatchObject({ status: "completed", chain: { ok: true }, open: [] });
      expect(loop).toMatchObject({
        status: "completed",
        chain: { ok: true },
        open: [],
        output: calm?.output,
      });
    },
  );

  test.runIf(isFull)(
    "L7: of 50 runs that wait while another run kills the worker, none is paused, replayed or counted",
    { timeout: 30 * boundMs },
    async ({ expect }) => {
      const yard = await Yard.open("", addressOf);
      expect(await yard.liveUntilDone("crowd", false)).toBe(5);
      const all = await yard.runs();
      const crowd = all.filter(({ runId }) => runId.startsWith("run_crowd-"));
      expect(crowd).toHaveLength(50);
      expect(all.filter(({ status }) => status === "paused").map(({ runId }) => runId)).toEqual([
        formatRunId("loop-crowd"),
      ]);
      expect(crowd.filter(({ status }) => status !== "waiting")).toEqual([]);
      for (const { runId } of crowd) {
        const trace = await traceRun(yard.store, runId);
        const types = trace?.events.map(({ type }) => type) ?? [];
        expect(types.filter((type) => type === "run_recover" || type === "run_pause")).toEqual([]);
      }
    },
  );

  test.runIf(isFull)(
    "J6, L7: three workers that are killed 300 times during calls complete all runs, repeat no recorded call and pause none",
    { timeout: 60 * boundMs },
    async ({ expect }) => {
      const server = await CountingServer.open();
      onTestFinished(() => server.close());
      const hit = new Set<string>();
      const living = new Map<string, () => void>();
      const book = server.book("kills", ({ name, key, body, caller }) => {
        const call = `${name} ${key}`;
        const isHit = hit.size < kills && isChosen(key) && !hit.has(call) && living.has(caller);
        if (isHit) {
          hit.add(call);
          living.get(caller)?.();
        }
        return toolAnswer(name, body);
      });
      const yard = await Yard.open(book.url, addressOf);
      const last: WorkerProcess[] = [];
      let isDone = false;
      /** Runs workers in one place one after the other. The last worker keeps running. */
      const keepSeat = async (seat: number): Promise<void> => {
        for (;;) {
          const { caller, worker } = yard.start("errands", false, seat);
          last[seat] = worker;
          living.set(caller, () => {
            living.delete(caller);
            worker.signal("SIGKILL");
          });
          await worker.ended;
          if (isDone) return;
        }
      };
      const seats = Array.from({ length: workers }, (_, seat) => keepSeat(seat));
      await book.until(() => hit.size >= kills, 40 * boundMs);
      isDone = true;
      for (const worker of last) worker.signal("SIGTERM");
      await Promise.all(seats);
      const { worker: drain } = yard.start("errands", true);
      while ((await yard.runs()).some(({ endedAt, status }) => endedAt === null && status !== "paused"))
        await pause(100);
      drain.signal("SIGTERM");
      await drain.ended;
      const runs = await yard.runs();
      expect(runs.length).toBeGreaterThan(kills);
      const calls = new Map<string, number>();
      for (const { name, key } of book.calls)
        calls.set(`${name} ${key}`, (calls.get(`${name} ${key}`) ?? 0) + 1);
      for (const { runId, status, recoveries } of runs) {
        const trace = await traceRun(yard.store, runId);
        expect([runId, status, trace?.output, trace?.chain.ok]).toEqual([runId, "completed", "done", true]);
        expect(trace?.events.filter(({ type }) => type === "run_pause")).toEqual([]);
        // J6: only a call in flight is repeated, once for each owner that was lost.
        const most = Math.max(
          0,
          ...[...calls].filter(([call]) => call.includes(` ${runId}/`)).map(([, n]) => n),
        );
        expect(most).toBeLessThanOrEqual(1 + recoveries);
      }
    },
  );
}

/** Number of cuts in a row. It exceeds the number of deaths at which a run counts as a crash loop. */
const cuts = 7;

/** A worker's place in the case of cut networks. */
export interface CutPlace {
  /** The database as the worker reaches it. */
  readonly databaseUrl: string;
  /** How the worker reaches the engine. `undefined` for the local engine. */
  readonly address?: SiteAddress;
  /** The connections of the worker that a cut closes. */
  readonly links: () => readonly FaultyProxy[];
}

/** A place whose worker reaches the database through a proxy. */
export async function cutPlace(databaseUrl: string): Promise<CutPlace> {
  const { hostname, port } = new URL(databaseUrl);
  const proxy = await FaultyProxy.open(hostname, Number(port));
  onTestFinished(() => proxy.close());
  return { databaseUrl: databaseUrl.replace(`:${port}/`, `:${proxy.port}/`), links: () => [proxy] };
}

/** The case in which two workers lose their network and keep running. */
export function cutCase(network: string, openPlaces: () => Promise<readonly CutPlace[]>): void {
  test.runIf(isFull)(
    `L7: a run whose workers lose ${network} seven times in one call, but stay alive, is not paused and completes`,
    { timeout: 10 * boundMs },
    async ({ expect }) => {
      const server = await CountingServer.open();
      onTestFinished(() => server.close());
      const answered = Promise.withResolvers<void>();
      const book = server.book("cuts", ({ name, body }) => ({
        ...toolAnswer(name, body),
        ...(name === "carry" && { hold: () => answered.promise }),
      }));
      const places = await openPlaces();
      const yard = await Yard.open(book.url, (seat) => places[seat]?.address);
      const byCaller = new Map<string, CutPlace>();
      const databaseUrl = process.env[crashServer];
      const started: WorkerProcess[] = [];
      onTestFinished(async () => {
        for (const worker of started) worker.signal("SIGKILL");
        await Promise.all(started.map(({ ended }) => ended));
      });
      for (const [seat, place] of places.entries()) {
        process.env[crashServer] = place.databaseUrl;
        const { caller, worker } = yard.start("errands", false, seat);
        process.env[crashServer] = databaseUrl;
        byCaller.set(caller, place);
        started.push(worker);
      }
      const runId = errandRun("life-1", 0);
      const carries = () =>
        book.calls.filter(({ name, key }) => name === "carry" && key.startsWith(`${runId}/`));
      await book.until(() => carries().length > 0, boundMs);
      for (let cut = 0; cut < cuts; cut++) {
        const before = carries();
        const links = byCaller.get(before.at(-1)?.caller ?? "")?.links() ?? [];
        for (const link of links) link.disturb("cut");
        await book.until(() => carries().length > before.length, boundMs);
        for (const link of links) link.heal();
      }
      answered.resolve();
      while ((await yard.runs()).some(({ endedAt }) => endedAt === null)) await pause(100);
      const trace = await traceRun(yard.store, runId);
      expect(trace).toMatchObject({ status: "completed", output: "done", chain: { ok: true } });
      expect(trace?.events.filter(({ type }) => type === "run_pause")).toEqual([]);
      expect((await yard.store.journal.find(runId))?.recoveries).toBeGreaterThanOrEqual(cuts);
    },
  );
}
