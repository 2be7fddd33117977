import {
  FatalError,
  Fault,
  formatRunId,
  type HostedAgent,
  type HostedWorkflow,
  type JsonValue,
  type RunHandle,
  type Signal,
  type StepOptions,
} from "../../../kernel/index.ts";
import {
  agentOf,
  casesOf,
  eventsOf,
  runIn,
  spawnChild,
  suspended,
  suspendsItself,
  untilLongEnough,
  workflowOf,
  type EngineHarness,
} from "./engine-world.ts";

type Code = Parameters<typeof agentOf>[1];

/** Returns a workflow whose input is an object with a number `cents`. `readInput` adds the member `currency`. */
function pricedOf(name: string, run: Code, more: Partial<HostedWorkflow> = {}): HostedWorkflow<JsonValue> {
  const readInput = (input: JsonValue): JsonValue => {
    const { cents } = (input ?? {}) as { readonly cents?: JsonValue };
    if (typeof cents !== "number") throw new Fault("invalid_argument", "cents: expected a number");
    return { cents, currency: "EUR" };
  };
  return workflowOf(name, run, { readInput, ...more });
}

/** Cases about the attempts of steps. */
export function retryCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);
  const quick = { baseDelayMs: 1, jitter: 0 };
  const retriesOf = async (run: RunHandle): Promise<readonly JsonValue[]> =>
    (await eventsOf(run)).flatMap((event) => (event.type === "step_retry" ? [event.data.attempt] : []));

  declare(
    "J5: a step with retry runs until an attempt succeeds, with one key for all attempts",
    async (world) => {
      const runtime = await world.open();
      const seen: unknown[] = [];
      const worker = agentOf("worker", async (ctx) =>
        ctx.step(
          "flaky",
          async ({ attempt, idempotencyKey }) => {
            seen.push([attempt, idempotencyKey]);
            if (attempt < 3) throw new Error(`no ${attempt}`);
            return attempt;
          },
          { retry: quick, idempotencyKey: "order-7" },
        ),
      );
      const run = await runtime.submit(worker, null);
      expect((await run.result()).output).toBe(3);
      expect(seen).toEqual([1, 2, 3].map((attempt) => [attempt, "order-7"]));
      expect(await retriesOf(run)).toEqual([1, 2]);
    },
  );

  declare(
    "J5: the error of a failed step is that of its last attempt, and lists all attempts",
    async (world) => {
      const runtime = await world.open();
      let attempts = 0;
      const worker = agentOf("worker", async (ctx) =>
        ctx
          .step("fails", async () => Promise.reject(new Error(`no ${++attempts}`)), {
            retry: { ...quick, maxAttempts: 3 },
          })
          .catch(({ code, message, details }: Fault) => ({
            code,
            message,
            attempts: details?.["attempts"] ?? null,
          })),
      );
      const { output } = await (await runtime.submit(worker, null)).result();
      expect(output).toEqual({
        code: "internal",
        message: "no 3",
        attempts: [1, 2, 3].map((attempt) => ({ attempt, code: "internal", message: `no ${attempt}` })),
      });
    },
  );

  declare(
    "J5: a step ends at its first attempt after a FatalError, retryable: false or a permanent fault, or without retry",
    async (world) => {
      const runtime = await world.open();
      const errors: Readonly<Record<string, () => unknown>> = {
        fatal: () => new FatalError("declined"),
        marked: () => Object.assign(new Error("declined"), { retryable: false }),
        permanent: () => new Fault("invalid_argument", "declined"),
      };
      const attempts: Record<string, number> = {};
      const worker = agentOf("worker", async (ctx) => {
        const failing = (name: string, error: () => unknown, options?: StepOptions): Promise<unknown> =>
          ctx
            .step(
              name,
              async ({ attempt }) => {
                attempts[name] = attempt;
                throw error();
              },
              options,
            )
            .catch(() => null);
        for (const [name, error] of Object.entries(errors)) await failing(name, error, { retry: quick });
        await failing("off", () => new Error("no"), { retry: false });
        await failing("absent", () => new Error("no"));
      });
      await (await runtime.submit(worker, null)).result();
      expect(attempts).toEqual({ fatal: 1, marked: 1, permanent: 1, off: 1, absent: 1 });
    },
  );

  declare(
    "J5: the next worker continues with the next attempt of a step that waits for it",
    async (world) => {
      const one = await world.open("one");
      await untilLongEnough(300, async (baseDelayMs) => {
        const attempts: number[] = [];
        const flaky = (): HostedAgent =>
          agentOf(`worker-${baseDelayMs}`, async (ctx) =>
            ctx.step(
              "flaky",
              async ({ attempt }) => {
                attempts.push(attempt);
                if (attempt < 3) throw new Error("not yet");
                return attempt;
              },
              { retry: { baseDelayMs, jitter: 0, factor: 1 } },
            ),
          );
        const from = Date.now();
        const run = await one.submit(flaky(), null);
        if (!(await suspendsItself(run))) return false;
        const { status, waitsFor } = await run.summary();
        if (Date.now() >= from + baseDelayMs) return false;
        expect([status, waitsFor]).toEqual(["waiting", ["time"]]);
        const resumed = await world.takeOver(one, run, flaky());
        expect([(await resumed.result()).output, attempts]).toEqual([3, [1, 2, 3]]);
        expect(await retriesOf(resumed)).toEqual([1, 2]);
        return true;
      });
    },
  );

  declare(
    "J5: resume() starts the attempts of the failed step anew and repeats no other step",
    async (world) => {
      const runtime = await world.open();
      const calls: string[] = [];
      let isBroken = true;
      const worker = agentOf("worker", async (ctx) => {
        await ctx.step("first", async () => (calls.push("first"), null));
        return ctx.step(
          "second",
          async ({ attempt }) => {
            calls.push(`second ${attempt}`);
            if (isBroken) throw new Error("broken");
            return "mended";
          },
          { retry: { ...quick, maxAttempts: 2 } },
        );
      });
      const run = await runtime.submit(worker, null);
      expect((await run.result()).status).toBe("failed");
      isBroken = false;
      await run.resume();
      expect((await run.result()).output).toBe("mended");
      expect(calls).toEqual(["first", "second 1", "second 2", "second 1"]);
    },
  );

  declare("C2: a cancel ends the wait between two attempts of a step", async (world) => {
    const runtime = await world.open();
    const worker = agentOf("worker", async (ctx) =>
      ctx.step("fails", async () => Promise.reject(new Error("no")), { retry: { baseDelayMs: 60_000 } }),
    );
    const run = await runtime.submit(worker, null);
    await suspended(run, "t0");
    await run.cancel("enough");
    expect((await run.result()).status).toBe("cancelled");
  });

  declare("timeoutMs: an attempt of a step that takes too long is aborted and retried", async (world) => {
    const runtime = await world.open();
    const worker = agentOf("worker", async (ctx) =>
      ctx.step(
        "slow",
        async ({ attempt, signal }) => {
          if (attempt === 2) return "in time";
          return new Promise<string>((_, reject) => {
            signal.addEventListener("abort", () => reject(new Error("aborted")));
          });
        },
        { retry: quick, timeoutMs: 20 },
      ),
    );
    const run = await runtime.submit(worker, null);
    expect((await run.result()).output).toBe("in time");
    const [retry] = (await eventsOf(run)).filter((event) => event.type === "step_retry");
    expect(retry?.type === "step_retry" && retry.data.failure.code).toBe("step_timeout");
  });

  declare(
    "retry: the next attempt of a step follows without a delay, also if the engine ends the execution before",
    async (world) => {
      const runtime = await world.open();
      const worker = agentOf("worker", async (ctx) =>
        ctx.step(
          "slow",
          async ({ attempt }) => (attempt === 2 ? "in time" : new Promise<string>(() => undefined)),
          { retry: { ...quick, baseDelayMs: 0 }, timeoutMs: 20 },
        ),
      );
      const run = await runtime.submit(worker, null);
      expect((await run.result()).output).toBe("in time");
    },
  );
}

/** Cases about errors in the code of a workflow. */
export function restartCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare(
    "J5: an error in a workflow's own code, such as a TypeError, restarts it on its records; a FatalError does not",
    async (world) => {
      const runtime = await world.open("one", { runRetry: { baseDelayMs: 1 } });
      const thrown = [new Error("not yet"), new TypeError("not a function"), new FatalError("declined")];
      let [executions, steps] = [0, 0];
      const worker = workflowOf("worker", async (ctx) => {
        await ctx.step("count", async () => ++steps);
        const error = thrown[executions++];
        if (error !== undefined) throw error;
        return executions;
      });
      const run = await runtime.submit(worker, null);
      const { status, error } = await run.result();
      expect([status, error?.message, executions, steps]).toEqual(["failed", "declined", 3, 1]);
      const restarts = (await eventsOf(run)).flatMap((event) =>
        event.type === "task_retry" ? [event.data.failure.message] : [],
      );
      expect(restarts).toEqual(["not yet", "not a function"]);
      await run.resume();
      expect((await run.result()).output).toBe(4);
    },
  );
}

/** Cases about typed signals. */
export function signalCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);
  const paid: Signal<{ readonly cents: number }, number> = {
    name: "paid",
    read: (value) => {
      const cents = (value as { readonly cents?: unknown } | null)?.cents;
      if (typeof cents === "number") return cents;
      throw new Fault("invalid_argument", "cents: expected a number");
    },
  };

  declare(
    "P1: a typed signal is checked before it is sent, kept until a run waits for it, and counts once per id",
    async (world) => {
      const runtime = await world.open();
      const worker = agentOf("worker", async (ctx) => {
        await ctx.waitForSignal("go");
        const payments = [await ctx.waitForSignal("paid"), await ctx.waitForSignal("paid")];
        return payments.map((value) => value ?? null);
      });
      const run = await runtime.submit(worker, null);
      await expect(run.signal(paid, { cents: "5" } as never)).rejects.toMatchObject({
        code: "invalid_argument",
      });
      for (const cents of [5, 6]) await run.signal(paid, { cents }, { id: "event-1" });
      await run.signal(paid, { cents: 7 }, { id: "event-2" });
      await run.signal("go");
      expect((await run.result()).output).toEqual([{ cents: 5 }, { cents: 7 }]);
      await expect(run.signal(paid, { cents: 8 })).rejects.toMatchObject({ code: "not_found" });
    },
  );

  declare(
    "J5: a signal that the code refuses is the error of its wait, and resume() waits for the next one",
    async (world) => {
      const worker = (): HostedAgent =>
        agentOf("worker", async (ctx) => {
          const wait = (accept: (value: JsonValue) => unknown): Promise<JsonValue | undefined> =>
            ctx.waitForSignal("paid", { accept });
          const caught = await wait((sent) => paid.read(sent)).catch(({ code }: Fault) => code);
          const { value } = await ctx.race<JsonValue>({
            paid: async (branch) =>
              (await branch.waitForSignal("paid", { accept: (sent) => paid.read(sent) })) ?? null,
            never: async (branch) => (await branch.waitForSignal("never")) ?? null,
          });
          return [caught ?? null, value];
        });
      const one = await world.open("one");
      const run = await one.submit(worker(), null);
      await run.signal("paid", "bad");
      await run.signal("paid", "worse");
      const { status, error } = await run.result();
      expect([status, error?.code, error?.message]).toEqual([
        "failed",
        "invalid_argument",
        "cents: expected a number",
      ]);
      await run.resume();
      await run.signal("paid", { cents: 5 });
      const resumed = await world.takeOver(one, run, worker());
      expect((await resumed.result()).output).toEqual(["invalid_argument", { cents: 5 }]);
    },
  );
}

/** Cases about sleeps, time limits and delayed starts. */
export function timeCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare(
    "sleep: ctx.sleep() takes a text such as a duration or a date, and does not wait for a date that has passed",
    async (world) => {
      const runtime = await world.open();
      const worker = agentOf("worker", async (ctx) => {
        const from = await ctx.now();
        await ctx.sleep("5 ms");
        await ctx.sleep(new Date(from + 10));
        await ctx.sleep(new Date(0));
        await ctx.sleep(-1);
        return (await ctx.now()) - from >= 10;
      });
      expect((await (await runtime.submit(worker, null)).result()).output).toBe(true);
    },
  );

  declare(
    "timeout: ctx.timeout() returns the value of work within its limit, and cancels longer work with its children",
    async (world) => {
      const runtime = await world.open();
      const child = agentOf("child", async (ctx) => (await ctx.waitForSignal("never")) ?? null);
      const worker = agentOf(
        "worker",
        async (ctx) => {
          const value = await ctx.timeout("1 minute", (branch) =>
            branch.step("quick", async () => "in time"),
          );
          const code = await ctx
            .timeout(10, async (branch) => (await branch.join(await spawnChild(branch, child))).output)
            .catch((error: Fault) => error.code as string);
          // What is left of a time that has passed.
          const late = await ctx
            .timeout(-1, async (branch) => (await branch.waitForSignal("never")) ?? null)
            .catch((error: Fault) => error.code as string);
          return [value, code, late];
        },
        { subAgents: [child] },
      );
      const run = await runtime.submit(worker, null);
      expect((await run.result()).output).toEqual(["in time", "timeout", "timeout"]);
      const ended = (await eventsOf(run)).flatMap((event) =>
        event.type === "task_end" && event.taskId === "t1" ? [event.data.status] : [],
      );
      expect(ended).toEqual(["cancelled"]);
    },
  );

  declare(
    "timeout: after a change of the owner, ctx.timeout() continues with the time that is left",
    async (world) => {
      const slow = (): HostedAgent =>
        agentOf("worker", async (ctx) =>
          ctx.timeout(Number(ctx.input), async (branch) => (await branch.waitForSignal("never")) ?? null),
        );
      const [one, hosted] = [await world.open("one"), slow()];
      await untilLongEnough(300, async (timeMs) => {
        const run = await one.submit(hosted, timeMs);
        if (!(await suspendsItself(run))) return false;
        const resumed = await world.takeOver(one, run, slow());
        const { status, error } = await resumed.result();
        expect([status, error?.code]).toEqual(["failed", "timeout"]);
        return true;
      });
    },
  );

  declare("L9: start() with delayMs or startAt starts a workflow at its time", async (world) => {
    const runtime = await world.open();
    const order = pricedOf("order", async (ctx) => ctx.now());
    const from = Date.now();
    const later = await runtime.start(order, { cents: 1 }, { startAt: new Date(from + 3_600_000) });
    const soon = await runtime.start(order, { cents: 1 }, { delayMs: 50 });
    expect(Number((await soon.result()).output) >= from + 50).toBe(true);
    const { status, waitsFor } = await later.summary();
    expect([status, waitsFor]).toEqual(["pending", ["time"]]);
    await later.cancel("not needed");
    expect((await later.result()).status).toBe("cancelled");
  });
}

/** Cases about durable functions: start, input, session and repeated ids. */
export function workflowCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare("workflow: start() stores what readInput returns, and the run has kind workflow", async (world) => {
    const runtime = await world.open();
    const order = pricedOf("order", async (ctx) => ctx.step("price", async () => ctx.input));
    const run = await runtime.start(order, { cents: 5 });
    const result = await run.result();
    expect(result.output).toEqual({ cents: 5, currency: "EUR" });
    expect("sessionId" in result).toBe(false);
    const { runs } = await runtime.list({ kind: "workflow" });
    expect(runs.map(({ runId, agentId, kind }) => ({ runId, agentId, kind }))).toEqual([
      { runId: run.runId, agentId: order.id, kind: "workflow" },
    ]);
    expect([run.sessionId, (await runtime.find(run.runId))?.sessionId]).toEqual([undefined, undefined]);
    expect((await runtime.sessions.list()).sessions).toEqual([]);
  });

  declare("workflow: an input that readInput refuses leaves no run", async (world) => {
    const runtime = await world.open();
    const order = pricedOf("order", async () => null);
    await expect(runtime.start(order, { cents: "5" })).rejects.toMatchObject({ code: "invalid_argument" });
    expect((await runtime.list()).runs).toEqual([]);
  });

  declare(
    "workflow: start() with a repeated runId returns the existing run, and is refused if the input differs",
    async (world) => {
      const runtime = await world.open();
      let executions = 0;
      const order = pricedOf("order", async (ctx) => ctx.step("count", async () => ++executions));
      const runId = formatRunId("order-7");
      const [first, second] = [
        await runtime.start(order, { cents: 5 }, { runId }),
        await runtime.start(order, { cents: 5 }, { runId }),
      ];
      expect([(await first.result()).output, (await second.result()).output, executions]).toEqual([1, 1, 1]);
      await expect(runtime.start(order, { cents: 6 }, { runId })).rejects.toMatchObject({
        code: "already_exists",
        details: { runId },
      });
    },
  );

  declare("workflow: the next worker continues a workflow and repeats no recorded step", async (world) => {
    const steps: string[] = [];
    const order = (): HostedWorkflow<JsonValue> =>
      pricedOf("order", async (ctx) => {
        await ctx.step("reserve", async () => (steps.push("reserve"), null));
        const paid = await ctx.waitForSignal("paid");
        return ctx.step("ship", async () => (steps.push("ship"), paid ?? null));
      });
    const one = await world.open("one");
    const run = await one.start(order(), { cents: 5 });
    await suspended(await runIn(one, run), "t0");
    const resumed = await world.takeOver(one, await runIn(one, run), order());
    await resumed.signal("paid", 5);
    expect([(await resumed.result()).output, steps]).toEqual([5, ["reserve", "ship"]]);
  });

  declare(
    "workflow: the readInput of a child task reads its input, and refused input is a fault",
    async (world) => {
      const runtime = await world.open();
      const child = pricedOf("child", async (ctx) => ctx.input);
      const parent = agentOf(
        "parent",
        async (ctx) => {
          const refused = await ctx.spawn(child.id, null).catch((error: Fault) => error.code);
          const spawned = await ctx.spawn(child.id, { cents: 1 });
          const output = spawned.kind === "spawned" ? (await ctx.join(spawned.handle)).output : null;
          return [refused as string, output];
        },
        { subAgents: [child] },
      );
      const { output } = await (await runtime.submit(parent, null)).result();
      expect(output).toEqual(["invalid_argument", { cents: 1, currency: "EUR" }]);
    },
  );

  declare("workflow: a workflow refuses a session, steering and follow-ups", async (world) => {
    const runtime = await world.open();
    const order = pricedOf("order", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
    await expect(runtime.submit(order, { cents: 5 }, { sessionId: "session_a" })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    const run = await runtime.start(order, { cents: 5 });
    await expect(run.steer("more")).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(run.followUp("more")).rejects.toMatchObject({ code: "invalid_argument" });
    await run.cancel("enough");
    const { status, interruptionReason } = await run.result();
    expect([status, interruptionReason]).toEqual(["cancelled", "enough"]);
  });

  declare("workflow: a fork of a workflow continues after the shared steps", async (world) => {
    const runtime = await world.open();
    const steps: string[] = [];
    const order = pricedOf("order", async (ctx) => {
      await ctx.step("reserve", async () => (steps.push("reserve"), null));
      return ctx.step("ship", async () => (steps.push("ship"), "shipped"));
    });
    const run = await runtime.start(order, { cents: 5 });
    await run.result();
    const [, reserved] = await stepEnds(await runIn(runtime, run));
    const fork = await run.fork({ at: (reserved ?? 0) - 1 });
    expect([(await fork.result()).output, steps]).toEqual(["shipped", ["reserve", "ship", "ship"]]);
    expect((await runtime.list({ kind: "workflow" })).runs.length).toBe(2);
  });
}

async function stepEnds(run: Awaited<ReturnType<typeof runIn>>): Promise<readonly number[]> {
  const seqs: number[] = [];
  for await (const event of run.events({ types: ["step_end"], follow: false }))
    if ("seq" in event) seqs.push(event.seq);
  return seqs;
}
