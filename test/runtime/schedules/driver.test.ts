import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/kernel/index.ts";
import { agent, settle } from "../runtime-setup.ts";
import { hour, minute, porter, runsOf, scheduleBench } from "./bench.ts";

/** Options of a schedule that fires every hour. */
const hourly = { name: "rounds", input: "go", everyMs: hour };

describe("a schedule", () => {
  test("a schedule starts a run at each fire, with its input, user, tenant, budget, session and metadata", async () => {
    const { runtime, clock } = await scheduleBench();
    const { agent: worker, fires } = porter();
    const start = clock.now();
    await runtime.schedules.create({
      ...hourly,
      agent: worker,
      userId: "ann",
      tenantId: "acme",
      sessionId: "rounds",
      budget: { maxTurns: 3 },
      metadata: { team: "night" },
    });
    await clock.advance(2 * hour);
    await settle();
    expect(fires).toEqual([start + hour, start + 2 * hour]);
    const runs = await runsOf(runtime, "rounds");
    expect(runs.map(({ status }) => status)).toEqual(["completed", "completed"]);
    expect(runs[0]).toMatchObject({
      userId: "ann",
      tenantId: "acme",
      sessionId: "rounds",
      metadata: { team: "night", schedule: "rounds", fireAt: start + hour },
    });
    const [schedule] = await runtime.schedules.list();
    expect(schedule).toMatchObject({
      status: "active",
      nextAt: start + 3 * hour,
      lastAt: start + 2 * hour,
      lastRunId: runs[1]?.runId,
      skipped: null,
    });
  });

  test("a schedule without a session id starts a new session at each fire", async () => {
    const { runtime, clock } = await scheduleBench();
    await runtime.schedules.create({ ...hourly, agent: porter().agent });
    await clock.advance(2 * hour);
    const sessions = (await runsOf(runtime, "rounds")).map(({ sessionId }) => sessionId);
    expect(new Set(sessions).size).toBe(2);
  });

  test("a schedule with a single time fires once and is done", async () => {
    const { runtime, clock } = await scheduleBench();
    const { agent: worker, fires } = porter();
    const at = clock.now() + hour;
    const options = { name: "once", agent: worker, input: null, at };
    await runtime.schedules.create(options);
    await clock.advance(10 * hour);
    expect(fires).toEqual([at]);
    expect(await runtime.schedules.get("once")).toMatchObject({ status: "done", nextAt: null, lastAt: at });
    // The same call at the next start of the program changes nothing.
    await runtime.schedules.create(options);
    await clock.advance(hour);
    expect(fires).toEqual([at]);
  });

  test("a schedule does not fire after it was removed", async () => {
    const { runtime, clock } = await scheduleBench();
    const { agent: worker, fires } = porter();
    await runtime.schedules.create({ ...hourly, agent: worker });
    await clock.advance(hour);
    expect(await runtime.schedules.remove("rounds")).toBe(true);
    expect(await runtime.schedules.remove("rounds")).toBe(false);
    await clock.advance(5 * hour);
    expect(fires.length).toBe(1);
  });

  test("a schedule does not fire while it is paused, and continues with the next fire after it is resumed", async () => {
    const { runtime, clock } = await scheduleBench();
    const { agent: worker, fires } = porter();
    const start = clock.now();
    await runtime.schedules.create({ ...hourly, agent: worker, missed: "all" });
    expect(await runtime.schedules.pause("rounds")).toMatchObject({ status: "paused", nextAt: null });
    await clock.advance(5 * hour + minute);
    expect(fires).toEqual([]);
    expect(await runtime.schedules.resume("rounds")).toMatchObject({
      status: "active",
      nextAt: start + 6 * hour,
    });
    await clock.advance(hour);
    expect(fires).toEqual([start + 6 * hour]);
  });

  test("a schedule of an agent that no process hosts waits, and fires once a process hosts the agent", async () => {
    const { runtime, clock } = await scheduleBench();
    const other = porter({ name: "other" });
    const { agent: worker, fires } = porter();
    const start = clock.now();
    runtime.register(other.agent);
    await runtime.schedules.create({ ...hourly, agent: "porter" });
    await runtime.schedules.create({ ...hourly, name: "others", agent: other.agent });
    await clock.advance(3 * hour);
    // A schedule that waits does not block the others.
    expect(other.fires.length).toBe(3);
    expect(await runtime.schedules.get("rounds")).toMatchObject({ status: "active", nextAt: start + hour });
    await clock.advance(minute / 2);
    runtime.register(worker);
    await settle();
    expect(fires).toEqual([start + 3 * hour]);
    expect(await runtime.schedules.get("rounds")).toMatchObject({ nextAt: start + 4 * hour });
  });

  test("a schedule of an agent that a resolver makes starts runs of that agent", async () => {
    const { runtime, clock } = await scheduleBench();
    const { agent: worker, fires } = porter({ name: "clerk" });
    const asked: unknown[] = [];
    runtime.register({
      name: "clerk",
      resolve: ({ metadata }) => {
        asked.push(metadata["schedule"]);
        return metadata["schedule"] === "mine" ? worker : undefined;
      },
    });
    const start = clock.now();
    await runtime.schedules.create({ ...hourly, name: "mine", agent: "clerk" });
    await runtime.schedules.create({ ...hourly, name: "others", agent: "clerk" });
    await clock.advance(hour);
    await settle();
    expect(fires).toEqual([start + hour]);
    expect(asked).toContain("others");
    expect(await runtime.schedules.get("others")).toMatchObject({ lastRunId: null, nextAt: start + hour });
  });

  test("a schedule that cannot start its run says why, reports the error and continues with the next fire", async () => {
    const { runtime, clock, errors } = await scheduleBench({ maxValueBytes: 100 });
    const { agent: worker } = porter();
    const start = clock.now();
    await runtime.schedules.create({ ...hourly, agent: worker, input: "x".repeat(200) });
    await clock.advance(hour);
    await settle();
    expect(await runtime.schedules.get("rounds")).toMatchObject({
      nextAt: start + 2 * hour,
      lastRunId: null,
      skipped: { at: start + hour, reason: "error" },
    });
    expect(String(errors[0])).toContain("schedule rounds could not start a run of porter");
    expect(errors.length).toBe(1);
  });

  test("a schedule whose agent is refused by its resolver says why, reports it once and continues with the next fire", async () => {
    const { runtime, clock, errors } = await scheduleBench();
    runtime.register({
      name: "clerk",
      resolve: () => {
        throw new Fault("permission_denied", "the project is not trusted");
      },
    });
    const start = clock.now();
    await runtime.schedules.create({ ...hourly, agent: "clerk" });
    await clock.advance(hour + minute / 2);
    await settle();
    expect(await runtime.schedules.get("rounds")).toMatchObject({
      nextAt: start + 2 * hour,
      skipped: { at: start + hour, reason: "error" },
    });
    expect(errors.length).toBe(1);
  });

  test("a schedule in a session where the agent works for another caller skips the fire, or waits with overlap queue", async () => {
    const { runtime, clock } = await scheduleBench();
    const { agent: worker, fires, release } = porter({ hold: true });
    const start = clock.now();
    const shared = { agent: worker, sessionId: "chat" };
    const busy = await runtime.submit(worker, "question", { sessionId: "chat" });
    await runtime.schedules.create({ ...hourly, ...shared });
    await runtime.schedules.create({ ...hourly, ...shared, name: "queued", overlap: "queue" });
    await clock.advance(hour);
    await settle();
    expect(await runtime.schedules.get("rounds")).toMatchObject({
      skipped: { at: start + hour, reason: "busy" },
    });
    expect(await runsOf(runtime, "queued")).toEqual([]);
    await release();
    expect((await busy.result()).status).toBe("completed");
    await settle();
    expect(fires).toEqual([Number.NaN, start + hour]);
    expect((await runsOf(runtime, "queued")).length).toBe(1);
    await release();
  });
});

describe("the overlap of a schedule", () => {
  test("overlap skip of a schedule drops fires while the last run has not ended", async () => {
    const { runtime, clock } = await scheduleBench();
    const { agent: worker, fires, release } = porter({ hold: true });
    const start = clock.now();
    await runtime.schedules.create({ ...hourly, agent: worker });
    await clock.advance(3 * hour);
    expect(fires).toEqual([start + hour]);
    await release();
    await clock.advance(hour);
    expect(fires).toEqual([start + hour, start + 4 * hour]);
    await release();
  });

  test("overlap skip of a schedule that was replaced still knows the unfinished run of the schedule before it", async () => {
    const { runtime, clock } = await scheduleBench();
    const { agent: worker, fires, release } = porter({ hold: true });
    const start = clock.now();
    await runtime.schedules.create({ ...hourly, agent: worker });
    await clock.advance(hour);
    const before = await runtime.schedules.get("rounds");
    await runtime.schedules.create({ ...hourly, agent: worker, input: "other", replace: true });
    const { lastAt, lastRunId } = (await runtime.schedules.get("rounds")) ?? {};
    expect({ lastAt, lastRunId }).toEqual({ lastAt: start + hour, lastRunId: before?.lastRunId });
    await clock.advance(2 * hour);
    expect(fires).toEqual([start + hour]);
    await release();
    await clock.advance(hour);
    expect(fires).toEqual([start + hour, start + 4 * hour]);
    await release();
  });

  test("overlap queue of a schedule starts one waiting fire as soon as the last run has ended", async () => {
    const { runtime, clock } = await scheduleBench();
    const { agent: worker, fires, release } = porter({ hold: true });
    const start = clock.now();
    await runtime.schedules.create({ ...hourly, agent: worker, overlap: "queue" });
    await clock.advance(4 * hour + minute);
    expect(fires).toEqual([start + hour]);
    const skipped = { at: start + 4 * hour, reason: "overlap" };
    expect(await runtime.schedules.get("rounds")).toMatchObject({ nextAt: start + 2 * hour, skipped });
    await release();
    expect(fires).toEqual([start + hour, start + 2 * hour]);
    expect(await runtime.schedules.get("rounds")).toMatchObject({ nextAt: start + 5 * hour });
    await release();
    await settle();
    expect(fires.length).toBe(2);
  });

  test("overlap queue of a schedule starts the waiting fire in another process if the first process closes", async () => {
    const { runtime, clock, open } = await scheduleBench();
    const first = porter({ hold: true });
    const second = porter({ hold: true });
    const start = clock.now();
    await runtime.schedules.create({ ...hourly, agent: first.agent, overlap: "queue" });
    await clock.advance(2 * hour);
    const closing = runtime.close();
    await clock.advance(minute);
    await closing;
    const other = await open();
    other.register(second.agent);
    await settle();
    expect(second.fires).toEqual([start + hour]);
    await second.release();
    expect(second.fires).toEqual([start + hour, start + 2 * hour]);
    await second.release();
    await other.close();
  });

  test("overlap cancel of a schedule cancels the last run and starts the next one after its end", async () => {
    const { runtime, clock } = await scheduleBench();
    const { agent: worker, fires, release } = porter({ hold: true });
    const start = clock.now();
    await runtime.schedules.create({ ...hourly, agent: worker, overlap: "cancel", sessionId: "rounds" });
    await clock.advance(2 * hour);
    await settle();
    await clock.advance(minute);
    await settle();
    expect(fires).toEqual([start + hour, start + 2 * hour]);
    const runs = await runsOf(runtime, "rounds");
    expect(runs.map(({ status }) => status)).toEqual(["cancelled", "running"]);
    await release();
    await release();
  });
});

describe("missed fires of a schedule", () => {
  /** Creates a schedule, closes the runtime before its first fire, and opens another one after the fifth. */
  async function missFour(missed: "skip" | "once" | "all") {
    const { runtime, clock, open } = await scheduleBench();
    const start = clock.now();
    await runtime.schedules.create({ ...hourly, agent: "porter", missed });
    await runtime.close();
    await clock.advance(4 * hour + 10 * minute);
    const other = await open();
    const { agent: worker, fires } = porter();
    other.register(worker);
    await settle();
    await clock.advance(hour);
    await settle();
    await other.close();
    return fires.map((fire) => (fire - start) / hour);
  }

  test("missed skip of a schedule drops missed fires", async () => {
    expect(await missFour("skip")).toEqual([5]);
  });

  test("missed once of a schedule starts one run for the latest missed fire", async () => {
    expect(await missFour("once")).toEqual([4, 5]);
  });

  test("missed all of a schedule starts a run for each missed fire, the oldest first", async () => {
    expect(await missFour("all")).toEqual([1, 2, 3, 4, 5]);
  });

  test("missed all of a schedule starts each run after the end of the run before it", async () => {
    const { runtime, clock } = await scheduleBench();
    const start = clock.now();
    await runtime.schedules.create({ ...hourly, agent: "porter", missed: "all" });
    await clock.advance(3 * hour + 10 * minute);
    const { agent: worker, fires, release } = porter({ hold: true });
    runtime.register(worker);
    await settle();
    expect(fires).toEqual([start + hour]);
    await release();
    await release();
    expect(fires).toEqual([start + hour, start + 2 * hour, start + 3 * hour]);
    await release();
  });
});

describe("the schedule driver", () => {
  test("T4: 1,000 idle schedules cause no read between two fires and share one timer", async () => {
    const { runtime, clock, store } = await scheduleBench();
    const { agent: worker, fires } = porter();
    runtime.register(worker);
    await settle();
    const timers = clock.pending;
    for (let index = 0; index < 1_000; index++)
      await runtime.schedules.create({
        name: `yearly-${index}`,
        agent: worker,
        input: null,
        cron: `${index % 60} ${index % 24} 1 1 *`,
      });
    await runtime.schedules.create({ ...hourly, agent: worker });
    await settle();
    expect(clock.pending).toBe(timers + 1);
    const reads: string[] = [];
    for (const method of ["due", "nextDueAt", "get", "list"] as const) {
      const original = store.records[method].bind(store.records) as (...args: unknown[]) => unknown;
      Object.assign(store.records, {
        [method]: (...args: unknown[]) => {
          reads.push(method);
          return original(...args);
        },
      });
    }
    await clock.advance(hour - 1);
    await settle();
    expect(reads).toEqual([]);
    await clock.advance(1);
    await settle();
    expect(fires.length).toBe(1);
    // One fire reads a page of due schedules a few times, and not once per schedule.
    expect(reads.length).toBeLessThan(15);
  });

  test("T3: a clock that is set back repeats no fire of a schedule and delays the next fire", async () => {
    const { runtime, clock } = await scheduleBench();
    let offset = 0;
    const shifted = {
      now: () => clock.now() + offset,
      schedule: (at: number, callback: () => void) => clock.schedule(at - offset, callback),
    };
    await runtime.close();
    const bench = await scheduleBench({ clock: shifted });
    const { agent: worker, fires } = porter();
    const start = shifted.now();
    await bench.runtime.schedules.create({ ...hourly, agent: worker, missed: "all" });
    await clock.advance(2 * hour);
    expect(fires.length).toBe(2);
    offset = -90 * minute;
    await clock.advance(90 * minute);
    expect(fires.length).toBe(2);
    await clock.advance(hour);
    expect(fires).toEqual([start + hour, start + 2 * hour, start + 3 * hour]);
  });

  test("the schedule driver wakes for an earlier schedule that is created while it waits for a later one", async () => {
    const { runtime, clock } = await scheduleBench();
    const { agent: worker, fires } = porter();
    const start = clock.now();
    await runtime.schedules.create({ ...hourly, agent: worker });
    await settle();
    await runtime.schedules.create({ name: "soon", agent: worker, input: null, at: start + minute });
    await clock.advance(minute);
    expect(fires).toEqual([start + minute]);
  });

  test("a process that closes during a fire does not keep other processes from firing the schedule", async () => {
    const { runtime, clock, open } = await scheduleBench();
    const { agent: worker, fires } = porter();
    const start = clock.now();
    const second = await open();
    second.register(agent("porter", (ctx, inbox) => worker.run(ctx, inbox)));
    await runtime.schedules.create({ ...hourly, agent: worker });
    await clock.advance(hour - 1);
    const advancing = clock.advance(1);
    await Promise.all([advancing, runtime.close()]);
    await clock.advance(minute / 2);
    await settle();
    expect(fires).toEqual([start + hour]);
    await second.close();
  });
});
