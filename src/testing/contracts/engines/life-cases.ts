import { Fault, messageText, userMessage, type HostedAgent, type JsonValue } from "../../../kernel/index.ts";
import { scriptedModel } from "../../scripted-model.ts";
import { agentOf, casesOf, eventOf, eventsOf, runIn, type EngineHarness } from "./engine-world.ts";

/** Time until a schedule fires. It must still be in the future when the schedule is stored. */
const fireInMs = 1_500;

const question = { toolName: "publish", callId: "publish-1", input: { draft: "a" }, reason: "It is public." };

/** Cases about approvals, forks, restarts, versions, the event log and schedules. */
export function lifeCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  const asking = (): HostedAgent =>
    agentOf("asking", async (ctx) => {
      const { decision } = await ctx.approval(question);
      return decision;
    });

  declare("J11: another process can read what a run has sent to its models", async (world) => {
    const model = scriptedModel(["One.", "Two."]);
    const asked: HostedAgent = {
      ...agentOf("asked", async (ctx) => {
        const turn = await ctx.turn(({ input }) => ({ input, instructions: "Be brief.", tools: [] }));
        const transcript = turn.history.append(userMessage("Hello"));
        const { message } = await ctx.llm({ transcript, instructions: turn.instructions });
        const longer = transcript.append(message, userMessage("And?"));
        await ctx.llm({ transcript: longer, instructions: "Be long.", temperature: 0 });
        return null;
      }),
      models: { main: model },
    };
    const run = await (await world.open("one")).submit(asked, "Hello");
    await run.result();
    const reader = await runIn(await world.open("two"), run);
    const starts = (await eventsOf(reader)).filter(({ type }) => type === "message_start");
    const requests = await Promise.all(starts.map(({ seq }) => reader.modelRequest(seq)));
    expect(
      requests.map(({ instructions, messages, settings, isProven }) => [
        instructions.state === "recorded" && instructions.value,
        messages.state === "recorded" && messages.value.map((message) => messageText(message)),
        settings,
        isProven,
      ]),
    ).toEqual([
      ["Be brief.", ["Hello"], {}, true],
      ["Be long.", ["Hello", "One.", "And?"], { temperature: 0 }, true],
    ]);
  });

  declare(
    "C1: a cancel ends an endless loop of steps that take no time, and an endless loop of continueAsNew",
    async (world) => {
      const runtime = await world.open();
      const stepping = agentOf("stepping", async (ctx) => {
        for (;;) await ctx.step("work", async () => null);
      });
      const continuing = agentOf("continuing", async (ctx) => ctx.continueAsNew(ctx.input));
      for (const agent of [stepping, continuing]) {
        const run = await runtime.submit(agent, null);
        await eventOf(run, agent === stepping ? "step_end" : "task_continue_as_new", 3);
        // As a request of another process comes: in a turn of the event loop of its own.
        await new Promise<void>((resolve) => void setImmediate(resolve));
        await run.cancel("enough");
        expect((await run.result()).interruptionReason).toBe("enough");
      }
    },
  );

  declare("approval: an answer wakes the run that waits for it", async (world) => {
    const runtime = await world.open();
    const run = await runtime.submit(asking(), null);
    const [pending] = await run.untilPersonIsNeeded();
    await run.approve(pending?.approvalId ?? "", { decision: "denied", reason: "not today" });
    expect((await run.result()).output).toBe("denied");
  });

  declare(
    "approval: a process that hosts no agent can answer a question, and the next worker continues the run",
    async (world) => {
      const one = await world.open("one");
      const run = await one.submit(asking(), null);
      await run.untilPersonIsNeeded();
      await one.close();
      const desk = await world.open("desk");
      const atDesk = await runIn(desk, run);
      const [pending] = await atDesk.pendingApprovals();
      await atDesk.approve(pending?.approvalId ?? "", { decision: "approved" });
      await desk.close();
      const two = await world.open("two");
      two.register(asking());
      expect((await (await runIn(two, run)).result()).output).toBe("approved");
    },
  );

  declare("approval: if two processes answer a question at once, the first answer counts", async (world) => {
    const [one, two] = [await world.open("one"), await world.open("two")];
    two.register(asking());
    const run = await one.submit(asking(), null);
    const [pending] = await run.untilPersonIsNeeded();
    const { approvalId = "" } = pending ?? {};
    const answers = await Promise.allSettled([
      run.as("ann").approve(approvalId, { decision: "approved" }),
      (await runIn(two, run)).as("ben").approve(approvalId, { decision: "denied" }),
    ]);
    const [won] = answers.flatMap(({ status }, index) => (status === "fulfilled" ? [index] : []));
    expect(answers.filter(({ status }) => status === "rejected").length).toBe(1);
    expect((await run.result()).output).toBe(won === 0 ? "approved" : "denied");
  });

  declare(
    "next run: the next worker creates the agent of a scheduled run from the metadata that is stored with the run",
    async (world) => {
      const clerk = (mark: JsonValue): HostedAgent =>
        agentOf("clerk", async (ctx) => {
          if (ctx.input === "start") {
            ctx.report({ next: [{ key: "review", input: "review", metadata: { reviewer: "memory" } }] });
            return null;
          }
          await ctx.waitForSignal("go");
          return [mark, ctx.facts.metadata];
        });
      const one = await world.open("one");
      const run = await one.submit(clerk("unused"), "start", { metadata: { mark: "green" } });
      const { data } = await eventOf(run, "run_scheduled");
      await one.close();
      const two = await world.open("two");
      two.register({
        name: "clerk",
        resolve: ({ metadata: { mark } }) => (mark === undefined ? undefined : clerk(mark)),
      });
      const left = await runIn(two, data);
      await left.signal("go");
      expect((await left.result()).output).toEqual(["green", { mark: "green", reviewer: "memory" }]);
    },
  );

  declare("J5, resume: a failed run restarts and repeats no recorded step", async (world) => {
    const runtime = await world.open();
    const steps: string[] = [];
    let isBroken = true;
    const worker = agentOf("worker", async (ctx) => {
      await ctx.step("first", async () => (steps.push("first"), null));
      return ctx.step("second", async () => {
        steps.push("second");
        if (isBroken) throw new Fault("invalid_argument", "no such work");
        return "done";
      });
    });
    const run = await runtime.submit(worker, null);
    expect((await run.result()).status).toBe("failed");
    isBroken = false;
    await run.resume();
    expect([(await run.result()).output, steps]).toEqual(["done", ["first", "second", "second"]]);
  });

  declare("fork: a fork in the middle of a run repeats only the later steps", async (world) => {
    const runtime = await world.open();
    const steps: string[] = [];
    const worker = agentOf("worker", async (ctx) => {
      await ctx.step("first", async () => (steps.push("first"), null));
      await ctx.waitForSignal("go");
      return ctx.step("second", async () => (steps.push("second"), "done"));
    });
    const run = await runtime.submit(worker, null);
    const { seq } = await eventOf(run, "task_suspend");
    await run.signal("go");
    await run.result();
    const fork = await run.fork({ at: seq });
    await fork.signal("go");
    expect([(await fork.result()).output, steps]).toEqual(["done", ["first", "second", "second"]]);
  });

  declare("fork: another process continues a fork of a run whose worker has closed", async (world) => {
    const worker = (): HostedAgent =>
      agentOf("worker", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
    const one = await world.open("one");
    const run = await one.submit(worker(), null);
    const { seq } = await eventOf(run, "task_suspend");
    const found = await world.takeOver(one, run, worker());
    const fork = await found.fork({ at: seq });
    await fork.signal("go", "fork");
    expect((await fork.result()).output).toBe("fork");
  });

  const versioned = (version: string): HostedAgent =>
    agentOf(
      "clerk",
      async (ctx) => {
        await ctx.waitForSignal("go");
        return version;
      },
      { version },
    );

  declare(
    "J9, version: with versionPolicy resume, a worker with another version of the agent continues the run",
    async (world) => {
      const one = await world.open("one");
      const run = await one.submit(versioned("1"), null);
      await eventOf(run, "task_suspend");
      const found = await world.takeOver(one, run, versioned("2"));
      await found.signal("go");
      expect((await found.result()).output).toBe("2");
    },
  );

  declare(
    "J9, version: with versionPolicy pin, only a worker with the version of the run continues it",
    async (world) => {
      const pin = (group: string) => ({ versionPolicy: "pin", group }) as const;
      const one = await world.open("one", pin("1"));
      const run = await one.submit(versioned("1"), null);
      await eventOf(run, "task_suspend");
      await one.close();
      const two = await world.open("two", pin("2"));
      const second = versioned("2");
      two.register(second);
      const found = await runIn(two, run);
      await found.signal("go");
      const other = await two.submit(second, null);
      await other.signal("go");
      expect((await other.result()).output).toBe("2");
      const three = await world.open("three", pin("1"));
      three.register(versioned("1"));
      expect((await found.result()).output).toBe("1");
    },
  );

  declare("J9, version: with versionPolicy refuse, a run of another version fails", async (world) => {
    const one = await world.open("one");
    const run = await one.submit(versioned("1"), null);
    await eventOf(run, "task_suspend");
    const found = await world.takeOver(one, run, versioned("2"), { versionPolicy: "refuse" });
    await found.signal("go");
    expect((await found.result()).error?.code).toBe("version_mismatch");
  });

  declare(
    "E1, events: readers in two processes get the same events of a run without a gap",
    async (world) => {
      const [one, two] = [await world.open("one"), await world.open("two")];
      const worker = agentOf("worker", async (ctx) => {
        for (let step = 0; step < 10; step++) await ctx.step(`step ${step}`, async () => step);
        await ctx.sleep(5);
        return "done";
      });
      two.register(worker);
      const run = await one.submit(worker, null);
      const read = async (runtime: typeof one): Promise<readonly string[]> => {
        const lines: string[] = [];
        for await (const event of (await runIn(runtime, run)).events())
          if ("seq" in event) lines.push(`${event.seq} ${event.type}`);
        return lines;
      };
      const [here, there] = await Promise.all([read(one), read(two)]);
      expect(here).toEqual(there);
      expect(here.map((line) => Number(line.split(" ")[0]))).toEqual(here.map((_, index) => index));
    },
  );

  declare(
    "E4, events: when the owner of a run changes, its events have no gap and no second task_start",
    async (world) => {
      const worker = (): HostedAgent =>
        agentOf("worker", async (ctx) => {
          ctx.emitEvent({ type: "turn_start", data: { turn: 1 } });
          await ctx.step("first", async () => null);
          await ctx.waitForSignal("go");
          ctx.emitEvent({ type: "turn_end", data: { turn: 1, stopReason: "stop", toolCalls: 0 } });
          return ctx.step("second", async () => "done");
        });
      const one = await world.open("one");
      const run = await one.submit(worker(), null);
      await eventOf(run, "task_suspend");
      const found = await world.takeOver(one, run, worker());
      await found.signal("go");
      await found.result();
      const events = await eventsOf(found);
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index));
      const once = ["run_start", "task_start", "turn_start", "turn_end", "task_end", "run_end"] as const;
      expect(events.map(({ type }) => type).filter((type) => once.some((each) => each === type))).toEqual([
        ...once,
      ]);
    },
  );

  declare(
    "T1, schedule: of two workers that host the agent of a schedule, one starts the run",
    async (world) => {
      const fired: unknown[] = [];
      const first = Promise.withResolvers<void>();
      const porter = (): HostedAgent =>
        agentOf("porter", async (ctx) => {
          await ctx.step("fire", async () => (fired.push(ctx.input), first.resolve(), null));
        });
      const runtimes = [await world.open("one"), await world.open("two")];
      for (const runtime of runtimes) runtime.register(porter());
      const [one] = runtimes;
      if (one === undefined) return;
      await one.schedules.create({
        name: "rounds",
        agent: porter().id,
        input: "go",
        at: one.clock.now() + fireInMs,
      });
      await first.promise;
      for (const { runId } of (await one.list()).runs) await (await runIn(one, { runId })).result();
      expect([fired, (await one.list()).runs.length]).toEqual([["go"], 1]);
    },
  );

  declare(
    "T5, T6, schedule: runNow() starts a run of a paused schedule with its edited input, in another process",
    async (world) => {
      const started = Promise.withResolvers<void>();
      const porter = (): HostedAgent =>
        agentOf("porter", async (ctx) => {
          started.resolve();
          return ctx.input;
        });
      const [desk, two] = [await world.open("desk"), await world.open("two")];
      two.register(porter());
      const at = desk.clock.now() + 3_600_000;
      const made = await desk.schedules.create({ name: "rounds", agent: porter().id, input: "old", at });
      await desk.schedules.pause("rounds");
      const edited = await desk.schedules.edit("rounds", { input: "new", metadata: { a: "b" } });
      const { runId } = await desk.schedules.runNow("rounds");
      await started.promise;
      const run = await runIn(desk, { runId });
      expect([edited.id, edited.status, (await run.result()).output]).toEqual([made.id, "paused", "new"]);
      const { metadata } = await run.summary();
      expect([metadata["a"], metadata["schedule"]]).toEqual(["b", "rounds"]);
      const again = await desk.schedules.create({ name: "rounds", agent: porter().id, input: "old", at });
      expect([again.input, again.lastRunId ?? runId]).toEqual(["new", runId]);
    },
  );

  declare(
    "T1, schedule: a schedule that fell due while no worker was open fires when the next worker opens",
    async (world) => {
      const fired = Promise.withResolvers<unknown>();
      const porter = (): HostedAgent =>
        agentOf("porter", async (ctx) => {
          await ctx.step("fire", async () => (fired.resolve(ctx.input), null));
        });
      const one = await world.open("one");
      await one.schedules.create({
        name: "rounds",
        agent: porter().id,
        input: "late",
        at: one.clock.now() + fireInMs,
      });
      await one.close();
      const two = await world.open("two");
      two.register(porter());
      expect(await fired.promise).toBe("late");
    },
  );
}
