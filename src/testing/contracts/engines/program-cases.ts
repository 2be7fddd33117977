import {
  Priority,
  type AttemptContext,
  type ForeignCall,
  type HostedAgent,
  type JsonValue,
  type MeteredRequest,
  type MeteredResult,
  type ProgramOptions,
  type RunContext,
} from "../../../kernel/index.ts";
import {
  agentOf,
  casesOf,
  eventOf,
  eventsOf,
  runIn,
  spawnChild,
  type EngineHarness,
  type EngineWorld,
} from "./engine-world.ts";

const request: MeteredRequest = {
  provider: "contract",
  model: "metered",
  inputTokens: 10,
  maxOutputTokens: 100,
};
const program: ProgramOptions = { name: "clerk", source: "acp" };
/** Options with which the run leaves memory as soon as the program only waits. */
const impatient: ProgramOptions = { ...program, idleMs: 0 };
const write: ForeignCall = { callId: "call-1", toolName: "write", input: { path: "a.txt" } };
const twoSeats = { spawnBudget: { maxAgents: 2, allowPreempt: true } };

async function used(): Promise<MeteredResult<null>> {
  return { value: null, usage: { inputTokens: 10, outputTokens: 1 } };
}

/** Returns an agent whose task consists of one attempt of a program. */
function programOf(
  name: string,
  body: (attempt: AttemptContext, ctx: RunContext) => Promise<JsonValue>,
  options: ProgramOptions = program,
): HostedAgent {
  return agentOf(name, (ctx) => ctx.attempt("work", (attempt) => body(attempt, ctx), { program: options }));
}

/** Returns a parent that hires `low`, and then `high` when `hurry` resolves; `high` takes the seat of `low`. */
function company(low: HostedAgent, high: HostedAgent, hurry: Promise<void>): HostedAgent {
  return agentOf(
    "lead",
    async (ctx) => {
      const victim = await spawnChild(ctx, low, { priority: Priority.LOW });
      await ctx.step("hurry", async () => (await hurry, null));
      const urgent = await spawnChild(ctx, high, { priority: Priority.HIGH });
      return (await ctx.joinAll([victim, urgent])).map(({ output }) => output);
    },
    { subAgents: [low, high] },
  );
}

/** Cases about programs that run inside an attempt (H2, H7), and about their questions and reports. */
export function programCases(harness: EngineHarness): void {
  const { expect, hostsPrograms = false } = harness;
  if (!hostsPrograms) return refusalCase(harness);
  const declare = casesOf(harness);

  declare(
    "H2, program: a hired program that loses its seat between two calls works on until its next call, which waits",
    async (world) => {
      const runtime = await world.open();
      const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const order: string[] = [];
      const low = programOf("low", async (attempt) => {
        await attempt.metered(request, used);
        begun.resolve();
        await ended.promise;
        order.push("low works on without a seat");
        await attempt.metered(request, used);
        return attempt.number;
      });
      const high = agentOf("high", async (ctx) => {
        await ctx.step("urgent", async () => (order.push("high"), null));
        ended.resolve();
        return "high";
      });
      const run = await runtime.submit(company(low, high, begun.promise), null, twoSeats);
      expect((await run.result()).output).toEqual([1, "high"]);
      expect(order).toEqual(["high", "low works on without a seat"]);
      const types = (await eventsOf(run)).map(({ type }) => type);
      expect(types.filter((type) => type.startsWith("seat_"))).toEqual([
        "seat_yield",
        "seat_pause",
        "seat_grant",
        "seat_recall",
      ]);
      const recall = types.indexOf("seat_recall");
      expect(types.slice(recall).filter((type) => type === "metered_call").length).toBe(1);
    },
  );

  declare("H7, program: a hired program keeps its seat until its call in flight has ended", async (world) => {
    const runtime = await world.open();
    const [begun, yielding] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const low = programOf("low", async (attempt) => {
      await attempt.metered(request, async () => {
        begun.resolve();
        await yielding.promise;
        return used();
      });
      return "low";
    });
    const high = agentOf("high", async () => "high");
    const run = await runtime.submit(company(low, high, begun.promise), null, twoSeats);
    await eventOf(run, "seat_yield");
    expect((await eventsOf(run)).some(({ type }) => type === "seat_pause")).toBe(false);
    yielding.resolve();
    expect((await run.result()).output).toEqual(["low", "high"]);
    const types = (await eventsOf(run)).map(({ type }) => type);
    expect(types.indexOf("metered_call") < types.indexOf("seat_pause")).toBe(true);
  });

  declare(
    "H2, program: an attempt whose call gets no seat within seatWaitMs ends, and the next attempt follows the recall",
    async (world) => {
      const runtime = await world.open();
      const [begun, lost] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const paused = Promise.withResolvers<void>();
      const attempts: number[] = [];
      const low = programOf("low", async (attempt) => {
        attempts.push(attempt.number);
        await attempt.keep(attempt.number);
        begun.resolve();
        await paused.promise;
        try {
          await attempt.metered({ ...request, seatWaitMs: 1 }, used);
        } finally {
          lost.resolve();
        }
        return [...attempt.earlier.kept];
      });
      const high = agentOf("high", async (ctx) =>
        ctx.step("urgent", async () => (await lost.promise, "high")),
      );
      const run = await runtime.submit(company(low, high, begun.promise), null, twoSeats);
      await eventOf(run, "seat_pause");
      paused.resolve();
      expect((await run.result()).output).toEqual([[1], "high"]);
      expect(attempts).toEqual([1, 2]);
    },
  );

  declare(
    "program: the calls of a hired program in a paused run wait until the run is resumed",
    async (world) => {
      const runtime = await world.open();
      const [begun, paused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let calls = 0;
      const agent = programOf("clerk", async (attempt) => {
        begun.resolve();
        await paused.promise;
        await attempt.metered(request, () => (calls++, used()));
        return attempt.number;
      });
      const run = await runtime.submit(agent, null);
      await begun.promise;
      await run.pause();
      await eventOf(run, "run_pause");
      paused.resolve();
      await run.resume();
      expect([(await run.result()).output, calls]).toEqual([1, 1]);
    },
  );

  declare(
    "H2, program: a question in a paused run ends its attempt after seatWaitMs and is asked once the run is resumed",
    async (world) => {
      const runtime = await world.open();
      const [begun, paused, lost] = [
        Promise.withResolvers<void>(),
        Promise.withResolvers<void>(),
        Promise.withResolvers<void>(),
      ];
      const agent = programOf("clerk", async (attempt) => {
        begun.resolve();
        await paused.promise;
        try {
          const { decision } = await attempt.permit(write, { seatWaitMs: 1 });
          return `${attempt.number} ${decision}`;
        } finally {
          lost.resolve();
        }
      });
      const run = await runtime.submit(agent, null);
      await begun.promise;
      await run.pause();
      await eventOf(run, "run_pause");
      paused.resolve();
      await lost.promise;
      expect((await eventsOf(run)).some(({ type }) => type === "approval_request")).toBe(false);
      await run.resume();
      const { data } = await eventOf(run, "approval_request");
      await run.approve(data.approvalId, { decision: "approved" });
      expect((await run.result()).output).toBe("2 approved");
    },
  );

  declare(
    "H2, program: an answer that arrives while the run is paused ends the attempt after seatWaitMs, and applies in the next",
    async (world) => {
      const runtime = await world.open();
      const lost = Promise.withResolvers<void>();
      const agent = programOf("clerk", async (attempt) => {
        try {
          const { decision } = await attempt.permit(write, { seatWaitMs: 1 });
          return `${attempt.number} ${decision}`;
        } finally {
          lost.resolve();
        }
      });
      const run = await runtime.submit(agent, null);
      const { data } = await eventOf(run, "approval_request");
      await run.pause();
      await eventOf(run, "run_pause");
      await run.approve(data.approvalId, { decision: "approved" });
      await lost.promise;
      await run.resume();
      expect((await run.result()).output).toBe("2 approved");
      const types = (await eventsOf(run)).map(({ type }) => type);
      expect(types.filter((type) => type === "approval_request" || type === "approval_decision")).toEqual([
        "approval_request",
        "approval_decision",
      ]);
      expect(types.indexOf("run_resume") < types.indexOf("approval_decision")).toBe(true);
    },
  );

  declare(
    "program: a question stays open after its attempt has ended, and its answer applies to the same call of the next one",
    async (world) => {
      const runtime = await world.open();
      const verdicts: string[] = [];
      const agent = programOf(
        "clerk",
        async (attempt) => {
          const { decision } = await attempt.permit(write);
          verdicts.push(`${attempt.number} ${decision}`);
          return "done";
        },
        impatient,
      );
      const run = await runtime.submit(agent, null);
      const { data } = await eventOf(run, "approval_request");
      expect([data.kind, data.foreign]).toEqual(["foreign_tool_call", { program: "clerk" }]);
      await eventOf(run, "task_suspend");
      // Another worker, because the run has left the memory of this one.
      const next = await world.takeOver(runtime, run, agent);
      expect((await next.summary()).status).toBe("waiting");
      expect((await next.pendingApprovals()).map(({ approvalId }) => approvalId)).toEqual([data.approvalId]);
      await next.approve(data.approvalId, { decision: "approved" });
      expect((await next.result()).output).toBe("done");
      expect(verdicts).toEqual(["2 approved"]);
      const events = await eventsOf(next);
      expect(events.filter(({ type }) => type === "approval_request").length).toBe(1);
      expect(events.filter(({ type }) => type === "approval_decision").length).toBe(1);
    },
  );

  declare(
    "program: the answer to one call does not apply to another call, which asks a question of its own",
    async (world) => {
      const runtime = await world.open();
      const agent = programOf(
        "clerk",
        async (attempt) => {
          const path = attempt.number === 1 ? "a.txt" : "/etc/passwd";
          const verdict = await attempt.permit({ ...write, input: { path } });
          return verdict.decision === "refused" ? verdict.reason : verdict.decision;
        },
        impatient,
      );
      const run = await runtime.submit(agent, null);
      const { data: first } = await eventOf(run, "approval_request");
      await eventOf(run, "task_suspend");
      const next = await world.takeOver(runtime, run, agent);
      await next.approve(first.approvalId, { decision: "approved" });
      const { data: second } = await eventOf(next, "approval_request", 2);
      expect(second.input).toEqual({ path: "/etc/passwd" });
      await next.approve(second.approvalId, { decision: "denied", reason: "not this one" });
      expect((await next.result()).output).toBe("not this one");
      expect(await next.pendingApprovals()).toEqual([]);
    },
  );

  declare(
    "program: a person cannot edit the arguments of a call that a hired program makes itself",
    async (world) => {
      const runtime = await world.open();
      const agent = programOf("clerk", async (attempt) => (await attempt.permit(write)).decision);
      const run = await runtime.submit(agent, null);
      const { data } = await eventOf(run, "approval_request");
      let code = "";
      try {
        await run.approve(data.approvalId, { decision: "approved", input: { path: "b.txt" } });
      } catch (error) {
        code = (error as { readonly code: string }).code;
      }
      expect(code).toBe("invalid_argument");
      await run.approve(data.approvalId, { decision: "skipped" });
      expect((await run.result()).output).toBe("refused");
    },
  );

  declare(
    "program: what a hired program reports is in the event log, marked with its source",
    async (world) => {
      const runtime = await world.open();
      const agent = programOf("clerk", async (attempt) => {
        attempt.tell({ type: "reasoning", text: "Hm." });
        attempt.tell({ type: "text", text: "I " });
        attempt.tell({ type: "text", text: "write." });
        attempt.tell({ type: "call_start", ...write });
        const result = { output: { type: "text", text: "written" }, isError: false } as const;
        attempt.tell({
          type: "call_end",
          callId: "call-1",
          toolName: "write",
          result,
          durationMs: 5,
          status: "ok",
        });
        attempt.tell({ type: "text", text: "Done." });
        return null;
      });
      const run = await runtime.submit(agent, null);
      await run.result();
      const told = (await eventsOf(run)).flatMap(({ type, data }) =>
        "source" in data ? [[type, data.source, "message" in data ? data.message.content : null]] : [],
      );
      const said = [
        { type: "reasoning", text: "Hm." },
        { type: "text", text: "I write." },
      ];
      expect(told).toEqual([
        ["message_start", "acp", null],
        ["message_end", "acp", said],
        ["tool_execution_start", "acp", null],
        ["tool_execution_end", "acp", null],
        ["message_start", "acp", null],
        ["message_end", "acp", [{ type: "text", text: "Done." }]],
      ]);
    },
  );

  declare(
    "program: steering reaches an open attempt of a hired program, and later attempts receive it too",
    async (world) => {
      const runtime = await world.open("one");
      const begun = Promise.withResolvers<void>();
      const agent = programOf("clerk", async (attempt) => {
        if (attempt.number > 1) return attempt.earlier.steering.length;
        begun.resolve();
        await attempt.whenSteered();
        await attempt.steering();
        await attempt.keep("steered");
        await attempt.permit(write);
        return null;
      });
      const run = await runtime.submit(agent, null);
      await begun.promise;
      await run.steer("faster");
      const { data } = await eventOf(run, "approval_request");
      const next = await world.takeOver(runtime, run, agent);
      await next.approve(data.approvalId, { decision: "approved" });
      expect((await next.result()).output).toBe(1);
    },
  );

  declare("L21: a hired program that stays on its machine binds the run to this machine", async (world) => {
    const one = await world.open("one", { host: "build-1" });
    const agent = programOf("clerk", (attempt) => attempt.permit(write).then(({ decision }) => decision), {
      ...program,
      staysOnHost: true,
    });
    const run = await one.submit(agent, null);
    const { data } = await eventOf(run, "approval_request");
    await one.close();
    const two = await world.open("two", { host: "build-2" });
    two.register(agent);
    const there = await runIn(two, run);
    await there.approve(data.approvalId, { decision: "approved" });
    const { status, waitsFor, host } = await there.summary();
    expect([status, waitsFor, host]).toEqual(["pending", ["host"], "build-1"]);
    const three = await world.open("three", { host: "build-1" });
    three.register(agent);
    expect((await there.result()).output).toBe("approved");
    const bound = (await eventsOf(there)).filter(({ type }) => type === "run_bind");
    expect(bound.map((event) => event.data)).toEqual([{ host: "build-1", program: "clerk" }]);
  });

  declare("L21: a cancel ends a run whose machine has no worker", async (world) => {
    const one = await world.open("one", { host: "build-1" });
    const agent = programOf("clerk", (attempt) => attempt.permit(write).then(({ decision }) => decision), {
      ...program,
      staysOnHost: true,
    });
    const run = await one.submit(agent, null);
    await eventOf(run, "approval_request");
    await one.close();
    const two = await world.open("two", { host: "build-2" });
    two.register(agent);
    const there = await runIn(two, run);
    await there.cancel("the machine is gone");
    expect((await there.result()).status).toBe("cancelled");
    expect(await there.pendingApprovals()).toEqual([]);
  });

  /** Creates a paused run that is bound to the machine build-1, which no longer has a worker. */
  const pausedElsewhere = async (world: EngineWorld) => {
    const one = await world.open("one", { host: "build-1" });
    const agent = programOf("clerk", (attempt) => attempt.permit(write).then(({ decision }) => decision), {
      ...program,
      staysOnHost: true,
    });
    const run = await one.submit(agent, null);
    const { data } = await eventOf(run, "approval_request");
    await run.pause();
    await eventOf(run, "run_pause");
    await one.close();
    const two = await world.open("two", { host: "build-2" });
    two.register(agent);
    return { agent, there: await runIn(two, run), approvalId: data.approvalId };
  };

  declare(
    "L21: a paused run that is bound to a machine continues only there, also if another machine resumes it",
    async (world) => {
      const { agent, there, approvalId } = await pausedElsewhere(world);
      await there.approve(approvalId, { decision: "approved" });
      await there.resume();
      expect((await there.summary()).status).toBe("paused");
      const three = await world.open("three", { host: "build-1" });
      three.register(agent);
      expect((await there.result()).output).toBe("approved");
      const owners = (await eventsOf(there)).filter(({ type }) => type === "attempt_start");
      expect(owners.length).toBe(2);
    },
  );

  declare("L21: a cancel ends a paused run whose machine has no worker", async (world) => {
    const { there } = await pausedElsewhere(world);
    await there.cancel("the machine is gone");
    expect((await there.result()).status).toBe("cancelled");
    expect(await there.pendingApprovals()).toEqual([]);
  });
}

/** Case for an engine that may take runs away from their workers: it cannot keep a program alive. */
function refusalCase(harness: EngineHarness): void {
  casesOf(harness)("program: an engine that cannot keep it alive refuses it by name", async (world) => {
    const runtime = await world.open();
    const run = await runtime.submit(
      programOf("clerk", async () => null),
      null,
    );
    const { status, error } = await run.result();
    harness.expect([status, error?.code]).toEqual(["failed", "unsupported"]);
    harness.expect(error?.message.startsWith("program clerk cannot run on the engine ")).toBe(true);
  });
}
