import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SpawnTracker } from "../../../../src/agents/index.ts";
import { Priority, RetryPolicy } from "../../../../src/kernel/index.ts";
import { agent, setUp, settle, gate } from "../../../runtime/runtime-setup.ts";
import { propertyRuns } from "../../../effort.ts";

const { BACKGROUND, LOW, NORMAL, HIGH, CRITICAL } = Priority;
const exhausted = expect.objectContaining({ code: "budget_exhausted", dimension: "agents" });

describe("SpawnTracker outside a run", () => {
  it("H1: in SpawnTracker, the root counts as one seat, and a released seat becomes free once", async () => {
    const tracker = new SpawnTracker({ maxAgents: 3 });
    expect(tracker.seatsTaken).toBe(1);
    await tracker.acquire("a");
    await tracker.acquire("b", BACKGROUND);
    expect(tracker.seatsTaken).toBe(3);
    tracker.release("a");
    tracker.release("a");
    expect(tracker.seatsTaken).toBe(2);
    tracker.release("root");
    expect(tracker.seatsTaken).toBe(2);
  });

  it("H4: SpawnTracker refuses a NORMAL task at the cap, and the error names the holders of the seats", async () => {
    const tracker = new SpawnTracker({ maxAgents: 2 });
    await tracker.acquire("a", LOW);
    await expect(tracker.acquire("b")).rejects.toMatchObject({
      message: "Agent budget exceeded: 3 > 2",
      details: { reason: "full", holders: [{ taskId: "root" }, { taskId: "a", priority: LOW }] },
    });
    await expect(tracker.acquire("b", HIGH, { parent: "a" })).rejects.toMatchObject({
      details: { reason: "nobody_below" },
    });
  });

  it("H2: in SpawnTracker, a HIGH task waits until its LOW victim has settled, so that both never run concurrently", async () => {
    const tracker = new SpawnTracker({ maxAgents: 2 });
    await tracker.acquire("low", LOW);
    const high = tracker.acquire("high", HIGH);
    expect([tracker.isPaused("low"), tracker.hasSeat("low"), tracker.hasSeat("high")]).toEqual([
      true,
      true,
      false,
    ]);
    tracker.settle("low");
    await high;
    expect([tracker.isPaused("low"), tracker.hasSeat("low"), tracker.hasSeat("high")]).toEqual([
      true,
      false,
      true,
    ]);
    expect(tracker.seatsTaken).toBe(2);
    tracker.release("high");
    expect(tracker.isPaused("low")).toBe(false);
  });

  it("R2: in SpawnTracker, a victim that ends passes its seat to the waiting task and frees no second seat", async () => {
    const tracker = new SpawnTracker({ maxAgents: 2 });
    await tracker.acquire("low", LOW);
    const high = tracker.acquire("high", HIGH);
    tracker.release("low");
    await high;
    await expect(tracker.acquire("late")).rejects.toThrow(exhausted);
  });

  it("H3, R4: in SpawnTracker, no task can preempt a task of equal priority, nor any task if allowPreempt is false", async () => {
    const tracker = new SpawnTracker({ maxAgents: 2 });
    await tracker.acquire("a", HIGH);
    await expect(tracker.acquire("b", HIGH)).rejects.toThrow(exhausted);
    const off = new SpawnTracker({ maxAgents: 2, allowPreempt: false });
    await off.acquire("a", LOW);
    await expect(off.acquire("b", CRITICAL)).rejects.toMatchObject({ details: { reason: "preemption_off" } });
  });

  it("R1: SpawnTracker preempts a victim once, so that one LOW seat serves one HIGH task", async () => {
    const tracker = new SpawnTracker({ maxAgents: 2 });
    await tracker.acquire("low", LOW);
    const first = tracker.acquire("one", HIGH);
    for (let index = 0; index < 100; index++)
      await expect(tracker.acquire(`more-${index}`, HIGH)).rejects.toThrow(exhausted);
    tracker.settle("low");
    await first;
    expect(tracker.seatsTaken).toBe(2);
  });

  it("H8, R9: raising the priority of a paused task in SpawnTracker resumes it only when a seat is free", async () => {
    const tracker = new SpawnTracker({ maxAgents: 3 });
    await tracker.acquire("low", LOW);
    await tracker.acquire("other", NORMAL);
    const high = tracker.acquire("high", HIGH);
    tracker.settle("low");
    await high;
    tracker.reprioritize("low", CRITICAL);
    expect(tracker.isPaused("low")).toBe(true);
    tracker.release("other");
    expect(tracker.isPaused("low")).toBe(false);
  });

  it("H8: lowering the priority of a task in SpawnTracker does not pause it while no other task waits", async () => {
    const tracker = new SpawnTracker({ maxAgents: 3 });
    await tracker.acquire("a", NORMAL);
    await tracker.acquire("b", NORMAL);
    tracker.reprioritize("a", BACKGROUND);
    expect(tracker.isPaused("a")).toBe(false);
  });

  it("R3: acquire() of SpawnTracker refuses an id that is taken and an unknown parent", async () => {
    const tracker = new SpawnTracker({ maxAgents: 5 });
    await tracker.acquire("a");
    await expect(tracker.acquire("a")).rejects.toMatchObject({ code: "already_exists" });
    await expect(tracker.acquire("b", NORMAL, { parent: "nobody" })).rejects.toMatchObject({
      code: "not_found",
    });
    await expect(tracker.acquire("constructor")).resolves.toBeUndefined();
    expect(tracker.find("toString")).toBeUndefined();
    expect(tracker.seatsTaken).toBe(3);
  });

  it.each([undefined, "", 7])("acquire() of SpawnTracker refuses the id %j and takes no seat", async (id) => {
    const tracker = new SpawnTracker({ maxAgents: 5 });
    await expect(tracker.acquire(id as never)).rejects.toThrow(
      "of acquire(): expected a text that is not empty",
    );
    expect(tracker.seatsTaken).toBe(1);
  });

  it("a task that is released while it waits in SpawnTracker is rejected as cancelled, and its victim is no longer paused", async () => {
    const tracker = new SpawnTracker({ maxAgents: 2 });
    await tracker.acquire("low", LOW);
    const high = tracker.acquire("high", HIGH);
    tracker.release("high");
    await expect(high).rejects.toMatchObject({ code: "cancelled" });
    expect(tracker.isPaused("low")).toBe(false);
  });

  it.each([
    ["release()", (tracker: SpawnTracker, id: never) => tracker.release(id)],
    ["settle()", (tracker: SpawnTracker, id: never) => tracker.settle(id)],
    ["reprioritize()", (tracker: SpawnTracker, id: never) => tracker.reprioritize(id, "HIGH")],
  ])("%s of SpawnTracker refuses an id that is not a text", (method, call) => {
    for (const id of [undefined, "", 7])
      expect(() => call(new SpawnTracker({ maxAgents: 2 }), id as never)).toThrow(
        `of ${method}: expected a text that is not empty`,
      );
  });

  it("H1: seats of SpawnTracker never exceed the cap and every acquire() settles, for random operations", async () => {
    const moves = fc.array(
      fc.record({
        what: fc.constantFrom("acquire", "acquire", "release", "settle", "reprioritize"),
        who: fc.nat(7),
        priority: fc.constantFrom(BACKGROUND, LOW, NORMAL, HIGH, CRITICAL),
      }),
      { maxLength: 40 },
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), moves, async (maxAgents, all) => {
        const tracker = new SpawnTracker({ maxAgents });
        const asked = new Map<string, Promise<string>>();
        for (const { what, who, priority } of all) {
          const id = `${who}`;
          if (what === "acquire" && tracker.find(id) === undefined)
            asked.set(
              id,
              tracker.acquire(id, priority).then(
                () => "seated",
                () => "not",
              ),
            );
          if (what === "release") tracker.release(id);
          if (what === "settle") tracker.settle(id);
          if (what === "reprioritize") tracker.reprioritize(id, priority);
          expect(tracker.seatsTaken).toBeLessThanOrEqual(maxAgents);
        }
        for (const id of asked.keys()) tracker.release(id);
        expect(tracker.seatsTaken).toBe(1);
        for (const answer of asked.values()) expect(["seated", "not"]).toContain(await answer);
      }),
      { numRuns: propertyRuns(2_000) },
    );
  });
});

describe("SpawnTracker inside a run", () => {
  it("H4: SpawnTracker inside a run shows the runtime's seats and refuses to change them", async () => {
    const { runtime } = await setUp();
    const held = gate();
    const child = agent("child", async (ctx) => ctx.step("hold", async () => (await held.promise, "done")));
    const seen: unknown[] = [];
    const parent = agent(
      "parent",
      async (ctx) => {
        const tracker = new SpawnTracker(ctx);
        seen.push(tracker.seatsTaken);
        const hired = await ctx.spawn(child.id, null, { priority: LOW });
        if (hired.kind === "refused") return "refused";
        seen.push(tracker.seatsTaken, tracker.isPaused(hired.handle.taskId), tracker.budget.maxAgents);
        for (const move of [
          () => tracker.acquire("x"),
          async () => tracker.release(hired.handle.taskId),
          async () => tracker.settle(hired.handle.taskId),
          async () => tracker.reprioritize(hired.handle.taskId, HIGH),
        ])
          seen.push(
            await move().then(
              () => "moved",
              (error: Error) => error.message,
            ),
          );
        held.resolve();
        await ctx.join(hired.handle);
        seen.push(tracker.seatsTaken, tracker.find(hired.handle.taskId));
        return "done";
      },
      { subAgents: [child] },
    );
    const run = await runtime.submit(parent, null, { spawnBudget: { maxAgents: 4 } });
    expect((await run.result()).output).toBe("done");
    const refused = (method: string, instead: string): unknown =>
      expect.stringMatching(new RegExp(`^SpawnTracker.${method} is not available inside a run.*${instead}`));
    expect(seen).toEqual([
      1,
      2,
      false,
      4,
      refused("acquire", "ctx.spawn"),
      refused("release", "the commit that ends"),
      refused("settle", "for itself"),
      refused("reprioritize", "run.reprioritize"),
      1,
      undefined,
    ]);
  });

  it("H6: ctx.spawn() enforces the cap without a tracker, and replay repeats the recorded outcome", async () => {
    const { runtime, store, open } = await setUp();
    const starts: string[] = [];
    const child = agent("child", async (ctx) => ctx.waitForSignal("go"));
    const parent = agent(
      "parent",
      async (ctx) => {
        const outcomes = [];
        for (const name of ["a", "b"]) outcomes.push(await ctx.spawn(child.id, name));
        starts.push(
          outcomes.map((each) => (each.kind === "spawned" ? each.handle.taskId : each.reason)).join(),
        );
        await ctx.waitForSignal("end");
        return outcomes.map(({ kind }) => kind);
      },
      { subAgents: [child] },
    );
    const run = await runtime.submit(parent, null, { spawnBudget: { maxAgents: 2 } });
    await settle();
    await runtime.close();
    const again = await open();
    again.register(parent);
    const handle = await again.find(run.runId);
    await handle?.signal("go", null, "t1");
    await settle();
    await handle?.signal("end");
    expect((await handle?.result())?.output).toEqual(["spawned", "refused"]);
    expect(new Set(starts)).toEqual(new Set(["t1,full"]));
    expect(starts.length).toBeGreaterThan(1);
    await store.close();
  });
});

it("RetryPolicy allows restarts up to its limit per agent, until reset()", () => {
  const policy = new RetryPolicy(2);
  const [one, other] = [agent("one", async () => null).id, agent("other", async () => null).id];
  expect([1, 2, 3].map(() => policy.shouldRetry(one))).toEqual([true, true, false]);
  expect(policy.shouldRetry(other)).toBe(true);
  policy.reset(one);
  expect(policy.shouldRetry(one)).toBe(true);
});
