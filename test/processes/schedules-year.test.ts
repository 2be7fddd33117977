import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { jsonText, type HostedAgent, type Runtime } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { cronReader } from "../../src/capabilities/schedules/cron-reader.ts";
import { agent } from "../runtime/runtime-setup.ts";
import { hour } from "../runtime/schedules/bench.ts";

const from = Date.parse("2026-01-01T00:00Z");
const to = Date.parse("2027-01-01T00:00Z");

/** Month, weekday, hour and minute of the wall clock in Berlin. */
const berlin = new Intl.DateTimeFormat("en-GB", {
  timeZone: "Europe/Berlin",
  weekday: "short",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});

/** The schedules, and what their fires in 2026 must be, computed without the reader under test. */
const schedules = [
  // The clock of Berlin skips 02:30 on 29 March and repeats it on 25 October.
  { name: "night", cron: "30 2 * * *", timeZone: "Europe/Berlin", fires: nights() },
  { name: "sundays", cron: "0 0-3 * 3,10 0", timeZone: "Europe/Berlin", fires: sundays() },
  { name: "weekly", everyMs: 7 * 24 * hour, fires: weeks() },
] as const;

function nights(): number[] {
  const fires: number[] = [];
  for (let at = from; at <= to; at += hour / 2) if (berlinTime(at).endsWith("02:30")) fires.push(at);
  const twice = Date.parse("2026-10-25T01:30Z");
  return [...fires.filter((at) => at !== twice), Date.parse("2026-03-29T01:00Z")].toSorted((a, b) => a - b);
}

function sundays(): number[] {
  const fires: number[] = [];
  for (let at = from + hour; at <= to; at += hour)
    if (/^(?:Mar|Oct) Sun 0[0-3]:00$/u.test(berlinTime(at))) fires.push(at);
  return fires;
}

function weeks(): number[] {
  const fires: number[] = [];
  for (let at = from + 7 * 24 * hour; at <= to; at += 7 * 24 * hour) fires.push(at);
  return fires;
}

function berlinTime(at: number): string {
  return berlin.format(at).replace(",", "");
}

test("T1: three runtimes on one SQLite file fire every schedule exactly once through a year with daylight saving", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-year-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const clock = new FakeClock(from);
  /** The runs that have started, by schedule and fire. */
  const started = new Map<string, number>();
  let noteStart = (): void => undefined;
  const worker = (): HostedAgent =>
    agent("porter", async (ctx) => {
      const fire = `${jsonText(ctx.input)} ${Number(ctx.facts.metadata["fireAt"])}`;
      await ctx.step("work", async () => {
        started.set(fire, (started.get(fire) ?? 0) + 1);
        return null;
      });
      noteStart();
    });
  const errors: unknown[] = [];
  const runtimes: Runtime[] = [];
  for (const workerId of ["a", "b", "c"]) {
    const store = await sqliteStore({ path: join(folder, "store.db"), hash: sha256, clock, watchEveryMs: 5 });
    const runtime = await createRuntime({
      store,
      clock,
      workerId,
      cron: async () => cronReader,
      pollMs: 24 * hour,
      onError: (error) => errors.push(error),
    });
    runtime.register(worker());
    runtimes.push(runtime);
  }
  for (const { fires: _fires, name, ...times } of schedules)
    await runtimes[0]?.schedules.create({
      name,
      agent: "porter",
      input: name,
      missed: "all",
      overlap: "queue",
      ...times,
    });

  const due = new Map<number, string[]>();
  for (const { name, fires } of schedules)
    for (const at of fires) due.set(at, [...(due.get(at) ?? []), `${name} ${at}`]);
  const expected = [...due.values()].flat();
  expect(schedules[0].fires.length).toBe(365);
  for (const [at, fires] of [...due].toSorted(([one], [other]) => one - other)) {
    const all = Promise.withResolvers<void>();
    noteStart = () => {
      if (fires.every((fire) => started.has(fire))) all.resolve();
    };
    await clock.advance(at - clock.now());
    noteStart();
    await all.promise;
  }
  await Promise.all(runtimes.map((runtime) => runtime.close()));

  expect([...started.keys()].toSorted()).toEqual(expected.toSorted());
  expect([...started.values()].filter((count) => count !== 1)).toEqual([]);
  expect(errors).toEqual([]);
});
