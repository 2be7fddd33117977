import {
  Fault,
  type Event,
  type HostedAgent,
  type Message,
  type Runtime,
  type TaskId,
} from "../../../kernel/index.ts";
import {
  agentOf,
  casesOf,
  eventOf,
  eventsOf,
  runIn,
  spawnChild,
  suspended,
  suspendsItself,
  untilLongEnough,
  type EngineHarness,
} from "./engine-world.ts";

/** Cases about children, messages, sleeps and signals: everything that wakes a run. */
export function waitCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare("spawn: a parent gets the outputs of three children in the order of joinAll", async (world) => {
    const runtime = await world.open();
    const child = agentOf("child", async (ctx) =>
      ctx.step("work", async () => `did ${JSON.stringify(ctx.input)}`),
    );
    const parent = agentOf(
      "parent",
      async (ctx) => {
        const handles = [];
        for (const input of ["a", "b", "c"]) handles.push(await spawnChild(ctx, child, { input }));
        return (await ctx.joinAll(handles)).map(({ output }) => output);
      },
      { subAgents: [child] },
    );
    const run = await runtime.submit(parent, null);
    expect((await run.result()).output).toEqual(['did "a"', 'did "b"', 'did "c"']);
  });

  declare(
    "childEvents: a parent reads the events of an ended child and of the tasks below it, and of no other task",
    async (world) => {
      const runtime = await world.open();
      const leaf = agentOf("leaf", async () => "leaf");
      const child = agentOf("child", async (ctx) => (await ctx.join(await spawnChild(ctx, leaf))).output, {
        subAgents: [leaf],
      });
      const parent = agentOf(
        "parent",
        async (ctx) => {
          const first = await spawnChild(ctx, child);
          const second = await spawnChild(ctx, child);
          await ctx.joinAll([first, second]);
          return ctx.step("read", async () => {
            const seen: string[] = [];
            for await (const { type, agentId, taskId } of ctx.childEvents(first))
              if (type === "task_start" || type === "task_end")
                seen.push(`${type} ${agentId} ${taskId === first.taskId}`);
            return seen;
          });
        },
        { subAgents: [child] },
      );
      const run = await runtime.submit(parent, null);
      expect((await run.result()).output).toEqual([
        "task_start child true",
        "task_start leaf false",
        "task_end leaf false",
        "task_end child true",
      ]);
    },
  );

  declare(
    "J8: continueAsNew forgets ended children: reading one fails with not_found, and cancelling one changes nothing",
    async (world) => {
      const runtime = await world.open();
      const child = agentOf("child", async (ctx) => ctx.input);
      const parent = agentOf(
        "parent",
        async (ctx) => {
          const { round, taskId } = ctx.input as { readonly round: number; readonly taskId: TaskId | null };
          const handle = await spawnChild(ctx, child, { input: round });
          await ctx.join(handle);
          if (round < 3) return ctx.continueAsNew({ round: round + 1, taskId: taskId ?? handle.taskId });
          try {
            ctx.childEvents({ taskId: taskId as TaskId, agentId: child.id });
            return "read";
          } catch (error) {
            await ctx.waitForSignal("cancelled");
            return Fault.from(error).code;
          }
        },
        { subAgents: [child] },
      );
      const run = await runtime.submit(parent, { round: 1, taskId: null });
      const first = await eventOf(run, "task_start", 2);
      await eventOf(run, "task_continue_as_new", 2);
      await run.cancel("too late", first.taskId);
      await run.signal("cancelled");
      const { status, output } = await run.result();
      expect([status, output]).toEqual(["completed", "not_found"]);
      expect((await eventsOf(run)).filter(({ type }) => type === "task_cancel")).toEqual([]);
    },
  );

  declare("childEvents: a task that is no child of the caller is refused with not_found", async (world) => {
    const runtime = await world.open();
    const lonely = agentOf("lonely", async (ctx) => {
      try {
        ctx.childEvents({ taskId: ctx.taskId, agentId: ctx.agentId });
        return "read";
      } catch (error) {
        return Fault.from(error).code;
      }
    });
    expect((await (await runtime.submit(lonely, null)).result()).output).toBe("not_found");
  });

  declare("join: a parent receives the failure of a child as a value", async (world) => {
    const runtime = await world.open();
    const child = agentOf("child", async (ctx) => {
      await ctx.sleep(1);
      throw new Fault("invalid_argument", "no such page");
    });
    const parent = agentOf(
      "parent",
      async (ctx) => {
        const { status } = await ctx.join(await spawnChild(ctx, child));
        return status;
      },
      { subAgents: [child] },
    );
    expect((await (await runtime.submit(parent, null)).result()).output).toBe("failed");
  });

  declare("join: the next worker resumes parent and child and repeats no recorded step", async (world) => {
    const steps: string[] = [];
    const team = (): HostedAgent => {
      const child = agentOf("child", async (ctx) => {
        await ctx.step("child", async () => (steps.push("child"), null));
        return (await ctx.waitForSignal("go")) ?? null;
      });
      return agentOf(
        "parent",
        async (ctx) => {
          await ctx.step("parent", async () => (steps.push("parent"), null));
          return (await ctx.join(await spawnChild(ctx, child))).output;
        },
        { subAgents: [child] },
      );
    };
    const one = await world.open("one");
    const run = await one.submit(team(), null);
    await suspended(run, "t0", "t1");
    await one.close();
    const two = await world.open("two");
    two.register(team());
    const resumed = await runIn(two, run);
    await resumed.signal("go", 5, "t1");
    expect([(await resumed.result()).output, steps]).toEqual([5, ["parent", "child"]]);
  });

  declare("parallel: a signal wakes the branch that waits for it, and no other branch", async (world) => {
    const runtime = await world.open();
    const worker = agentOf("worker", async (ctx) => {
      const { left, right } = await ctx.parallel({
        left: async (branch) => (await branch.waitForSignal("left")) ?? null,
        right: async (branch) => (await branch.waitForSignal("right")) ?? null,
      });
      return [left, right];
    });
    const run = await runtime.submit(worker, null);
    await run.signal("right", 2);
    await run.signal("left", 1);
    expect((await run.result()).output).toEqual([1, 2]);
  });

  declare("ask: the answer of an agent in another run wakes the run that asks it", async (world) => {
    const runtime = await world.open();
    const target = agentOf("target", async (ctx, inbox) => {
      const [message] = inbox.messages as readonly [Message];
      await ctx.sleep(1);
      await ctx.reply(message, ["about", message.body]);
    });
    const asker = agentOf("asker", async (ctx) => {
      const answer = await ctx.ask(target.id, "bees");
      return answer.kind === "replied" ? answer.body : answer.kind;
    });
    runtime.register(target);
    expect((await (await runtime.submit(asker, null)).result()).output).toEqual(["about", "bees"]);
  });

  declare("ask: a question is timed_out if no agent answers in time", async (world) => {
    const runtime = await world.open();
    const target = agentOf("target", async (ctx) => void (await ctx.waitForSignal("never")));
    const asker = agentOf("asker", async (ctx) => (await ctx.ask(target.id, null, { timeoutMs: 5 })).kind);
    runtime.register(target);
    expect((await (await runtime.submit(asker, null)).result()).output).toBe("timed_out");
  });

  declare("ask: a question to a child returns the output of the child", async (world) => {
    const runtime = await world.open();
    const child = agentOf("child", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
    const parent = agentOf(
      "parent",
      async (ctx) => {
        const answer = await ctx.ask(await spawnChild(ctx, child), null);
        return answer.kind === "replied" ? answer.body : answer.kind;
      },
      { subAgents: [child] },
    );
    const run = await runtime.submit(parent, null);
    await eventOf(run, "spawn_start");
    await run.signal("go", "from the child", "t1");
    expect((await run.result()).output).toBe("from the child");
  });

  declare("send: a message starts a run of an agent that another worker hosts", async (world) => {
    const one = await world.open("one", { group: "senders" });
    const two = await world.open("two", { group: "targets" });
    const received = Promise.withResolvers<unknown>();
    const target = agentOf("target", async (_ctx, inbox) => received.resolve(inbox.messages[0]?.body));
    two.register(target);
    const sender = agentOf("sender", async (ctx) => ctx.send(target.id, "hello"));
    await (await one.submit(sender, null)).result();
    expect(await received.promise).toBe("hello");
  });

  declare("sleep: the next worker wakes a sleeping run whose worker has closed", async (world) => {
    const sleeper = (): HostedAgent =>
      agentOf("sleeper", async (ctx) => {
        await ctx.sleep(Number(ctx.input));
        return "woken";
      });
    const one = await world.open("one");
    const hosted = sleeper();
    await untilLongEnough(500, async (sleepMs) => {
      const run = await one.submit(hosted, sleepMs);
      if (!(await suspendsItself(run))) return false;
      const resumed = await world.takeOver(one, run, sleeper());
      expect((await resumed.result()).output).toBe("woken");
      return true;
    });
  });

  declare("sleep: a run sleeps several times in turn", async (world) => {
    const runtime = await world.open();
    const sleeper = agentOf("sleeper", async (ctx) => {
      const times: number[] = [];
      for (let round = 0; round < 4; round++) {
        await ctx.sleep(3);
        times.push(await ctx.now());
      }
      return times.every((time, index) => index === 0 || time >= (times[index - 1] ?? 0) + 3);
    });
    expect((await (await runtime.submit(sleeper, null)).result()).output).toBe(true);
  });

  declare("sleep: a later start time delays the run, and the run then starts", async (world) => {
    const runtime = await world.open();
    const worker = agentOf("worker", async (ctx) => ctx.now());
    const startAt = runtime.clock.now() + 50;
    const run = await runtime.submit(worker, null, { startAt });
    expect(Number((await run.result()).output) >= startAt).toBe(true);
  });

  declare(
    "sleep: a run that starts later and receives mail is released until its start time",
    async (world) => {
      const runtime = await world.open("one", { suspendAfterMs: 600_000 });
      const [worker, pulse] = [agentOf("worker", async () => null), agentOf("pulse", async () => null)];
      const run = await runtime.submit(worker, null, { startAt: runtime.clock.now() + 3_600_000 });
      await run.steer("Be brief.");
      await eventOf(run, "run_steer");
      const isScheduled = async (): Promise<boolean> => {
        const { status, waitsFor } = await run.summary();
        return status === "pending" && waitsFor.includes("time");
      };
      // Another run gives the engine time to release this one.
      while (!(await isScheduled())) await (await runtime.submit(pulse, null)).result();
      await run.cancel();
      expect((await run.result()).status).toBe("cancelled");
    },
  );

  declare("signal: a signal that arrives before the run waits for it is kept", async (world) => {
    const runtime = await world.open();
    const worker = agentOf("worker", async (ctx) => {
      await ctx.waitForSignal("first");
      return (await ctx.waitForSignal("second")) ?? null;
    });
    const run = await runtime.submit(worker, null);
    await run.signal("second", 2);
    await eventOf(run, "task_suspend");
    await run.signal("first", 1);
    expect((await run.result()).output).toBe(2);
  });

  declare("signal: a wait for a signal ends with undefined after its timeout", async (world) => {
    const runtime = await world.open();
    const worker = agentOf(
      "worker",
      async (ctx) => (await ctx.waitForSignal("never", { timeoutMs: 5 })) === undefined,
    );
    expect((await (await runtime.submit(worker, null)).result()).output).toBe(true);
  });

  declare(
    "signal: a hundred signals of two processes wake a run, and each is consumed once",
    async (world) => {
      const runtimes: readonly Runtime[] = [await world.open("one"), await world.open("two")];
      const worker = agentOf("worker", async (ctx) => {
        let sum = 0;
        for (let count = 0; count < 100; count++) sum += Number(await ctx.waitForSignal(`number ${count}`));
        return sum;
      });
      for (const runtime of runtimes) runtime.register(worker);
      const run = await (runtimes[0] as Runtime).submit(worker, null);
      const handles = await Promise.all(runtimes.map((runtime) => runIn(runtime, run)));
      await Promise.all(
        Array.from({ length: 100 }, (_, count) =>
          (handles[count % 2] ?? run).signal(`number ${count}`, count),
        ),
      );
      expect((await run.result()).output).toBe(4_950);
    },
  );

  declare("steer: steering reaches a run that waits, and does not end its wait", async (world) => {
    const runtime = await world.open();
    const worker = agentOf("worker", async (ctx) => {
      await ctx.waitForSignal("go");
      return [...(await ctx.steering({ mode: "all" }))];
    });
    const run = await runtime.submit(worker, null);
    await eventOf(run, "task_suspend");
    await run.steer("faster");
    await eventOf(run, "run_steer");
    await run.signal("go");
    expect((await run.result()).output).toEqual(["faster"]);
  });

  declare("steer: a child reads its input once, also if another worker resumes it", async (world) => {
    const team = (): HostedAgent => {
      const child = agentOf("child", async (ctx) => {
        await ctx.waitForSignal("go");
        const first = await ctx.steering({ mode: "all" });
        await ctx.waitForSignal("end");
        return [first, await ctx.steering({ mode: "all" }), await ctx.followUps({ mode: "all" })];
      });
      return agentOf(
        "parent",
        async (ctx) => {
          const { output } = await ctx.join(await spawnChild(ctx, child));
          return [output, await ctx.steering({ mode: "all" })];
        },
        { subAgents: [child] },
      );
    };
    const one = await world.open("one");
    const run = await one.submit(team(), null);
    await suspended(run, "t0", "t1");
    await run.steer("faster", "t1");
    await run.followUp("then rest", "t1");
    await run.steer("for the parent");
    await eventOf(run, "run_steer", 3);
    await run.signal("go", null, "t1");
    await eventOf(run, "task_wake");
    await one.close();
    const two = await world.open("two");
    two.register(team());
    const resumed = await runIn(two, run);
    await resumed.signal("end", null, "t1");
    expect((await resumed.result()).output).toEqual([[["faster"], [], ["then rest"]], ["for the parent"]]);
    const sent = (await eventsOf(resumed)).filter(({ type }) => type === "run_steer");
    expect(sent.map(({ taskId }) => taskId)).toEqual(["t1", "t1", "t0"]);
  });

  declare("cancel: a parent cancels a child with the tasks below it, and continues", async (world) => {
    const runtime = await world.open();
    const report = agentOf("report", async (ctx) => void (await ctx.waitForSignal("never")));
    const lead = agentOf("lead", async (ctx) => void (await ctx.join(await spawnChild(ctx, report))), {
      subAgents: [report],
    });
    const parent = agentOf("parent", async (ctx) => (await ctx.join(await spawnChild(ctx, lead))).status, {
      subAgents: [lead],
    });
    const run = await runtime.submit(parent, null);
    await suspended(run, "t0", "t1", "t2");
    await run.as("ada").cancel("enough", "t1");
    const { status, output } = await run.result();
    expect([status, output]).toEqual(["completed", "cancelled"]);
    const events = await eventsOf(run);
    const orders = events.filter(({ type }) => type === "task_cancel" || type === "run_cancel");
    expect(orders.map(({ type, taskId, data }) => [type, taskId, data])).toEqual([
      ["task_cancel", "t1", { reason: "enough", by: "ada" }],
    ]);
    const ends = events.filter((event): event is Event<"task_end"> => event.type === "task_end");
    const statuses = Object.fromEntries(ends.map(({ taskId, data }) => [taskId, data.status]));
    expect(statuses).toEqual({ t0: "completed", t1: "cancelled", t2: "cancelled" });
    await run.cancel("again", "t1");
    await expect(run.cancel("unknown", "t7")).rejects.toMatchObject({ code: "not_found" });
  });
}
