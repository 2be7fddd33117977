import { describe, expect, test } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import type { Runtime, ScheduleOptions } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, settle, setUp } from "../runtime-setup.ts";
import { hour, porter, runsOf, scheduleBench } from "./bench.ts";

const base = { name: "rounds", agent: "porter", input: "go" } as const;

/** The message with which `create` refuses the options. */
async function refusal(runtime: Runtime, options: object): Promise<string> {
  try {
    await runtime.schedules.create({ ...base, ...options } as unknown as ScheduleOptions);
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return code === "invalid_argument" ? message : `${code}: ${message}`;
  }
  return "created";
}

describe("schedules.create()", () => {
  test("schedules.create() returns the schedule with its next fire", async () => {
    const { runtime, clock } = await scheduleBench();
    const schedule = await runtime.schedules.create({
      ...base,
      cron: "0 9 * * 1-5",
      timeZone: "Europe/Berlin",
    });
    // 14 November 2023 is a Tuesday.
    expect(new Date(schedule.nextAt ?? 0).toISOString()).toBe("2023-11-15T08:00:00.000Z");
    expect(schedule).toMatchObject({
      name: "rounds",
      agentId: "porter",
      input: "go",
      times: { cron: "0 9 * * 1-5", timeZone: "Europe/Berlin" },
      overlap: "skip",
      missed: "once",
      heartbeat: false,
      status: "active",
      createdAt: clock.now(),
      lastRunId: null,
    });
    expect(await runtime.schedules.get("rounds")).toEqual(schedule);
    expect(await runtime.schedules.list()).toEqual([schedule]);
  });

  test("schedules.create() with the same options returns the schedule unchanged, also for an interval without a start", async () => {
    const { runtime, clock, open } = await scheduleBench();
    const first = await runtime.schedules.create({ ...base, everyMs: hour });
    await clock.advance(hour / 2);
    const other = await open();
    expect(
      await other.schedules.create({ ...base, agent: agent("porter", async () => null), everyMs: hour }),
    ).toEqual(first);
    await other.close();
  });

  test("schedules.create() with other options under the same name is refused, or replaces the schedule", async () => {
    const { runtime } = await scheduleBench();
    const first = await runtime.schedules.create({ ...base, everyMs: hour });
    expect(await refusal(runtime, { everyMs: 2 * hour })).toBe(
      "already_exists: schedule rounds exists with other options: choose another name, remove it, or set replace: true",
    );
    const replaced = await runtime.schedules.create({ ...base, everyMs: 2 * hour, replace: true });
    expect(replaced.id).not.toBe(first.id);
    expect(await runtime.schedules.list()).toEqual([replaced]);
  });

  test("schedules.create() creates one schedule if several processes call it at once", async () => {
    const { runtime, open } = await scheduleBench();
    const other = await open();
    const created = await Promise.all(
      [runtime, other, runtime, other].map((each) => each.schedules.create({ ...base, everyMs: hour })),
    );
    expect(new Set(created.map(({ id }) => id)).size).toBe(1);
    await other.close();
  });

  test("schedules.create() gives a schedule that was removed another id, so that its fires start new runs", async () => {
    const { runtime, clock } = await scheduleBench();
    const { agent: worker } = porter();
    const at = clock.now() + hour;
    await runtime.schedules.create({ ...base, agent: worker, at });
    await clock.advance(hour);
    await runtime.schedules.remove("rounds");
    await runtime.schedules.create({ ...base, agent: worker, input: "other", at: at + hour });
    await clock.advance(hour);
    await settle();
    expect((await runsOf(runtime, "rounds")).length).toBe(2);
  });

  test("schedules.create() refuses a schedule that never fires", async () => {
    const { runtime, clock } = await scheduleBench();
    expect(await refusal(runtime, { cron: "0 0 30 2 *" })).toBe(
      'invalid cron "0 0 30 2 *" of schedule rounds: it never fires; choose days that exist, such as "0 0 28 2 *"',
    );
    expect(await refusal(runtime, { at: clock.now() - 1 })).toBe(
      "invalid at of schedule rounds: the time has passed; choose a later one",
    );
    expect(await refusal(runtime, { at: "2020-01-01T00:00", timeZone: "Asia/Tokyo" })).toContain(
      "has passed",
    );
    expect(await runtime.schedules.list()).toEqual([]);
  });

  test("schedules.create() needs exactly one of cron, everyMs and at", async () => {
    const { runtime } = await scheduleBench();
    expect(await refusal(runtime, {})).toContain("exactly one of cron, everyMs and at, not none");
    expect(await refusal(runtime, { cron: "* * * * *", everyMs: hour })).toContain("not cron and everyMs");
    expect(await refusal(runtime, { at: 9e15 - 1, startAt: 5 })).toContain("omit startAt");
  });

  test("schedules.create() refuses unknown options and names the right one", async () => {
    const { runtime } = await scheduleBench();
    expect(await refusal(runtime, { everyMs: hour, timezone: "UTC" })).toBe(
      'unknown option "timezone" of schedules.create(): use "timeZone"',
    );
    expect(await refusal(runtime, { everyMs: hour, session: "new" })).toContain('use "sessionId"');
    expect(await refusal(runtime, { every: hour })).toContain('use "everyMs"');
    expect(await refusal(runtime, { everyMs: hour, context: {} })).toContain("register the agent");
    await expect(runtime.schedules.list({ user: "x" } as object)).rejects.toThrow('unknown option "user"');
    await expect(runtime.schedules.get("x", { tenant: "x" } as object)).rejects.toThrow(
      'unknown option "tenant"',
    );
  });

  test("schedules.create() refuses values that a fire could not use", async () => {
    const { runtime } = await scheduleBench();
    const invalid: readonly [object, RegExp][] = [
      [{ name: "" }, /invalid name of a schedule ""/u],
      [{ name: "a/b" }, /invalid name of a schedule/u],
      [{ name: undefined }, /invalid name of a schedule/u],
      [{ agent: {} }, /invalid agent/u],
      [{ agent: "../x" }, /invalid agent/u],
      [{ everyMs: 999 }, /invalid everyMs 999 of schedules.create\(\): expected an integer from 1000/u],
      [{ everyMs: Number.NaN }, /invalid everyMs/u],
      [{ everyMs: "1h" }, /invalid everyMs/u],
      [{ startAt: -1 }, /invalid startAt -1/u],
      [{ startAt: "soon" }, /invalid time "soon"/u],
      [{ timeZone: "Europe/Berlin" }, /invalid timeZone of schedule rounds: it has no effect here/u],
      [{ overlap: "skp" }, /invalid overlap "skp".*use "skip"/u],
      [{ missed: "never" }, /invalid missed "never"/u],
      [{ heartbeat: "yes" }, /invalid heartbeat "yes"/u],
      [{ sessionId: "../x" }, /invalid session id/u],
      [{ budget: { maxTokens: -1 } }, /invalid maxTokens -1/u],
      [{ budget: { maxToken: 1 } }, /unknown option "maxToken"/u],
      [{ spawnBudget: { maxAgents: 0 } }, /invalid maxAgents 0/u],
      [{ priority: "URGENT" }, /invalid priority/u],
      [{ retention: "forever" }, /invalid history retention/u],
      [{ metadata: [] }, /invalid metadata/u],
      [
        { metadata: { list: Array.from({ length: 998 }, () => 0) } },
        /the metadata of schedule \S+ is too large/u,
      ],
      [{ userId: 5 }, /invalid userId/u],
      [{ input: undefined }, /not_json/u],
      [{ input: "x".repeat(70_000) }, /too_large/u],
    ];
    for (const [options, message] of invalid)
      expect(await refusal(runtime, { everyMs: hour, ...options })).toMatch(message);
    expect(await refusal(runtime, { cron: "61 * * * *" })).toMatch(/invalid cron "61/u);
    expect(await refusal(runtime, { cron: "* * * * *", timeZone: "Nowhere" })).toMatch(/invalid timeZone/u);
    expect(await runtime.schedules.list()).toEqual([]);
  });

  test("schedules.create() without a reader of cron expressions accepts intervals and says how to get one", async () => {
    const { runtime } = await setUp();
    expect(await refusal(runtime, { everyMs: hour })).toBe("created");
    expect(await refusal(runtime, { name: "cron", cron: "* * * * *" })).toMatch(
      /^dependency_missing: .*openRuntime/u,
    );
    await runtime.close();
  });

  test("schedules.create() after close() fails with closed", async () => {
    const { runtime } = await setUp();
    await runtime.close();
    await expect(runtime.schedules.list()).rejects.toMatchObject({ code: "closed" });
    await expect(runtime.schedules.create({ ...base, everyMs: hour })).rejects.toMatchObject({
      code: "closed",
    });
  });

  test("pause() and resume() of a schedule that does not exist fail with not_found", async () => {
    const { runtime } = await scheduleBench();
    await expect(runtime.schedules.pause("none")).rejects.toMatchObject({ code: "not_found" });
    await expect(runtime.schedules.resume("none")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("S6: schedules in the view of a tenant", () => {
  test("S6: the schedules of other tenants and users do not exist in a tenant view", async () => {
    const { runtime } = await scheduleBench();
    const acme = runtime.forTenant({ tenantId: "acme" });
    const ann = runtime.forTenant({ tenantId: "acme", userId: "ann" });
    const bob = runtime.forTenant({ tenantId: "acme", userId: "bob" });
    const zen = runtime.forTenant({ tenantId: "zen", userId: "ann" });
    // The same name in every view is a schedule of its own.
    for (const view of [runtime, acme, ann, bob, zen])
      await view.schedules.create({ ...base, everyMs: hour, agent: "porter" });
    const owners = async (view: Runtime) =>
      (await view.schedules.list()).map(({ tenantId, userId }) => `${tenantId} ${userId}`).toSorted();
    expect(await owners(ann)).toEqual(["acme ann"]);
    expect(await owners(bob)).toEqual(["acme bob"]);
    expect(await owners(zen)).toEqual(["zen ann"]);
    expect(await owners(acme)).toEqual(["acme ann", "acme bob", "acme null"]);
    expect(await owners(runtime)).toEqual(["acme ann", "acme bob", "acme null", "null null", "zen ann"]);
    await bob.schedules.pause("rounds");
    expect(await bob.schedules.remove("rounds")).toBe(true);
    expect(await bob.schedules.get("rounds")).toBeUndefined();
    expect((await ann.schedules.get("rounds"))?.status).toBe("active");
    expect((await acme.schedules.get("rounds", { userId: "ann" }))?.userId).toBe("ann");
    const owner = { tenantId: "zen", userId: "ann" };
    expect((await runtime.schedules.get("rounds", owner))?.tenantId).toBe("zen");
    expect((await runtime.schedules.list({ tenantId: null })).length).toBe(1);
    expect((await runtime.schedules.list({ userId: "ann", agentId: "porter" })).length).toBe(2);
    await expect(ann.schedules.get("rounds", { userId: "bob" })).rejects.toThrow("this view is for");
    await expect(ann.schedules.create({ ...base, everyMs: hour, tenantId: "zen" })).rejects.toThrow(
      "this view is for",
    );
  });

  test("a tenant has at most maxSchedulesPerTenant schedules, and other tenants are not affected", async () => {
    const { runtime } = await scheduleBench({ maxSchedulesPerTenant: 2 });
    const ann = runtime.forTenant({ tenantId: "acme", userId: "ann" });
    const bob = runtime.forTenant({ tenantId: "acme", userId: "bob" });
    const add = (view: Runtime, name: string, more: object = {}) =>
      view.schedules.create({ ...base, name, everyMs: hour, agent: "porter", ...more });
    await add(ann, "one");
    await add(bob, "two");
    await expect(add(ann, "three")).rejects.toMatchObject({
      code: "permission_denied",
      message:
        'tenant "acme" has 2 schedules, and maxSchedulesPerTenant of openRuntime() allows no more; remove a schedule, or raise the option',
    });
    await add(ann, "one", { everyMs: 2 * hour, replace: true });
    await add(runtime.forTenant({ tenantId: "zen" }), "three");
    for (const name of ["four", "five", "six"]) await add(runtime, name);
    await bob.schedules.remove("two");
    await add(ann, "three");
    const unlimited = await scheduleBench({ maxSchedulesPerTenant: null });
    for (const name of ["one", "two", "three"])
      await add(unlimited.runtime.forTenant({ tenantId: "acme" }), name);
    await expect(scheduleBench({ maxSchedulesPerTenant: 0 })).rejects.toThrow("maxSchedulesPerTenant");
  });

  test("S6: a schedule starts no run in the session of another tenant", async () => {
    const { runtime, clock, errors } = await scheduleBench({ unknownPrice: "ignore" });
    const model = scriptedModel(["noted"]);
    const worker = new Agent({ name: "clerk", model });
    const zen = runtime.forTenant({ tenantId: "zen", userId: "zoe" });
    const acme = runtime.forTenant({ tenantId: "acme", userId: "ann" });
    const start = clock.now();
    await (await zen.submit(worker, "private", { sessionId: "diary" })).result();
    await acme.schedules.create({ ...base, agent: worker, everyMs: hour, sessionId: "diary" });
    await clock.advance(hour);
    await settle();
    expect(model.calls.length).toBe(1);
    expect(await acme.schedules.get("rounds")).toMatchObject({
      lastRunId: null,
      skipped: { at: start + hour, reason: "error" },
    });
    expect(errors.length).toBe(1);
  });

  test("a schedule that the code of a run creates belongs to the tenant and user of the run", async () => {
    const { runtime } = await scheduleBench();
    const planner = agent("planner", async (ctx) =>
      ctx.step("plan", async () => {
        await runtime.schedules.create({ ...base, everyMs: hour });
        return (await runtime.schedules.get("rounds"))?.userId ?? null;
      }),
    );
    const run = await runtime.submit(planner, null, { tenantId: "acme", userId: "ann" });
    expect((await run.result()).output).toBe("ann");
    const [schedule] = await runtime.forTenant({ tenantId: "acme", userId: "ann" }).schedules.list();
    expect(schedule).toMatchObject({ tenantId: "acme", userId: "ann" });
  });
});

describe("schedules.edit() and schedules.runNow()", () => {
  test("T5: edit() of a schedule changes later fires, and keeps id, pause, last run and the options of create()", async () => {
    const { runtime, clock } = await scheduleBench();
    runtime.register(porter().agent);
    const options = { ...base, everyMs: hour, userId: "ann", budget: { maxTurns: 3 }, metadata: { a: "b" } };
    const owner = { userId: "ann" };
    const made = await runtime.schedules.create(options);
    await clock.advance(hour);
    await settle();
    const edited = await runtime.schedules.edit(
      "rounds",
      { input: "look again", cron: "0 9 * * *", timeZone: "Europe/Berlin", budget: null, overlap: "queue" },
      owner,
    );
    expect(edited).toMatchObject({
      id: made.id,
      input: "look again",
      overlap: "queue",
      times: { cron: "0 9 * * *", timeZone: "Europe/Berlin" },
      run: { metadata: { a: "b" } },
      lastRunId: expect.stringMatching(/^run_/u),
      nextAt: Date.parse("2023-11-15T08:00:00Z"),
    });
    expect(edited.run).not.toHaveProperty("budget");
    expect((await runtime.schedules.edit("rounds", { timeZone: "UTC" }, owner)).nextAt).toBe(
      Date.parse("2023-11-15T09:00:00Z"),
    );
    expect(await runtime.schedules.create(options)).toMatchObject({ id: made.id, input: "look again" });
  });

  test("T5: edit() of a schedule refuses unknown options, another owner, times that never fire and an unknown name", async () => {
    const { runtime } = await scheduleBench();
    await runtime.schedules.create({ ...base, everyMs: hour });
    const refused = (changes: object): Promise<string> =>
      runtime.schedules.edit("rounds", changes as never).then(
        () => "edited",
        (error: Error) => error.message,
      );
    expect(await refused({ name: "other" })).toContain("the name and the owner of a schedule do not change");
    expect(await refused({ inptu: "x" })).toContain('use "input"');
    expect(await refused({ cron: "0 0 30 2 *" })).toContain("it never fires");
    expect(await refused({ cron: "* * * * *", at: 5 })).toContain("exactly one of cron, everyMs and at");
    await expect(runtime.schedules.edit("none", {})).rejects.toThrow("schedule none does not exist");
    expect((await runtime.schedules.get("rounds"))?.input).toBe("go");
  });

  test("T6: runNow() of a schedule starts one run, also while paused and after the last fire, and keeps the next fire", async () => {
    const { runtime, clock } = await scheduleBench();
    runtime.register(porter().agent);
    const { nextAt } = await runtime.schedules.create({ ...base, everyMs: hour });
    const first = await runtime.schedules.runNow("rounds");
    await settle();
    expect((await runtime.schedules.get("rounds"))?.nextAt).toBe(nextAt);
    await runtime.schedules.pause("rounds");
    const second = await runtime.schedules.runNow("rounds");
    await settle();
    const paused = await runtime.schedules.get("rounds");
    expect([paused?.status, paused?.nextAt, paused?.lastRunId]).toEqual(["paused", null, second.runId]);
    await runtime.schedules.create({ ...base, name: "once", at: clock.now() + hour });
    await clock.advance(hour);
    await settle();
    const third = await runtime.schedules.runNow("once");
    await settle();
    expect((await runtime.schedules.get("once"))?.status).toBe("done");
    const { runs } = await runtime.list();
    const ids = runs.map(({ runId }) => runId);
    for (const { runId } of [first, second, third]) expect(ids).toContain(runId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("edit() of a schedule waits for a run that is being started, and runNow() returns that run", async () => {
    const { runtime } = await scheduleBench();
    await runtime.schedules.create({ ...base, agent: "nobody-hosts-me", everyMs: hour });
    const one = await runtime.schedules.runNow("rounds");
    expect((await runtime.schedules.runNow("rounds")).runId).toBe(one.runId);
    await expect(runtime.schedules.edit("rounds", { input: "x" })).rejects.toMatchObject({
      code: "agent_busy",
    });
  });
});
