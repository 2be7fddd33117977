import {
  FatalError,
  Fault,
  formatRunId,
  reviveFault,
  rootTaskId,
  Transcript,
  userMessage,
  type Account,
  type AgentId,
  type HostedAgent,
  type HostedWorkflow,
  type JsonValue,
  type RunContext,
  type RunHandle,
  type Runtime,
  type RunId,
} from "../../../kernel/index.ts";
import { scriptedModel } from "../../scripted-model.ts";
import {
  agentOf,
  casesOf,
  eventsOf,
  runIn,
  suspended,
  suspendsItself,
  untilLongEnough,
  workflowOf,
  type EngineHarness,
  spawnChild,
} from "./engine-world.ts";

/** Waits until a run has started another run with the id `id`, and returns the latter. */
async function startedBy(runtime: Runtime, run: RunHandle, id: string): Promise<RunHandle> {
  const runId = formatRunId(id);
  for await (const event of run.events())
    if (event.type === "run_scheduled" && event.data.runId === runId) return runIn(runtime, { runId });
  throw new Fault("not_found", `run ${run.runId} ended and has not started ${runId}`);
}

async function startedIn(run: RunHandle): Promise<readonly RunId[]> {
  return (await eventsOf(run)).flatMap((event) => (event.type === "run_scheduled" ? [event.data.runId] : []));
}

/** Cases about runs that start other runs. */
export function callCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);
  const double = (): HostedWorkflow<JsonValue> =>
    workflowOf("double", async (ctx) => ctx.step("double", async () => Number(ctx.input) * 2));
  const waiting = (): HostedWorkflow<JsonValue> =>
    workflowOf("waiting", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
  const starting = (run: (ctx: RunContext) => Promise<JsonValue>, ...others: HostedAgent[]): HostedAgent =>
    workflowOf("caller", run, { subAgents: others });

  declare(
    "J2: ctx.start() takes no seat and is no open call, and join() returns the same outcome each time",
    async (world) => {
      const runtime = await world.open();
      const other = double();
      const caller = starting(async (ctx) => {
        const handles = [await ctx.start(other.id, 4), await ctx.start(other.id, 5)];
        const between = await ctx.step("between", async () => "between");
        const outputs: JsonValue[] = [];
        for (const handle of [...handles, handles[0]])
          if (handle !== undefined) outputs.push((await ctx.join(handle)).output);
        return [between, ...outputs, Object.keys(ctx.snapshot.headcount.tasks).length];
      }, other);
      const run = await runtime.submit(caller, null);
      expect((await run.result()).output).toEqual(["between", 8, 10, 8, 1]);
      expect(new Set(await startedIn(run)).size).toBe(2);
    },
  );

  declare("J1: the next worker does not repeat a start, and receives its run's outcome", async (world) => {
    const other = double();
    const delayed = (): HostedAgent =>
      starting(async (ctx) => {
        const handle = await ctx.start(other.id, 4, { delayMs: Number(ctx.input) });
        return (await ctx.join(handle)).output;
      }, other);
    const [one, hosted] = [await world.open("one"), delayed()];
    await untilLongEnough(300, async (delayMs) => {
      const from = Date.now();
      const run = await one.submit(hosted, delayMs);
      if (!(await suspendsItself(run))) return false;
      const { status, waitsFor } = await run.summary();
      if (Date.now() >= from + delayMs) return false;
      expect([status, waitsFor]).toEqual(["waiting", ["run"]]);
      const resumed = await world.takeOver(one, run, delayed());
      expect((await resumed.result()).output).toBe(8);
      expect((await startedIn(resumed)).length).toBe(1);
      return true;
    });
  });

  declare(
    "id: start() with the id of an existing run joins it if the input is equal, and fails with already_exists otherwise",
    async (world) => {
      const runtime = await world.open();
      const other = double();
      const caller = starting(async (ctx) => {
        const handle = await ctx.start(other.id, 4, { id: "shared" });
        const refused = await ctx.start(other.id, 5, { id: "shared" }).catch(({ code }: Fault) => code);
        return [handle.runId, (await ctx.join(handle)).output, refused as JsonValue];
      }, other);
      const expected = ["run_shared", 8, "already_exists"];
      for (let time = 0; time < 2; time++)
        expect((await (await runtime.submit(caller, null)).result()).output).toEqual(expected);
    },
  );

  declare("S6: the id of a started run belongs to the tenant of its caller", async (world) => {
    const runtime = await world.open();
    const other = waiting();
    const caller = starting(async (ctx) => {
      const handle = await ctx.start(other.id, null, { id: "shared" });
      await ctx.sendSignal("run_shared", "go", ctx.facts.tenantId);
      return [handle.runId, (await ctx.join(handle)).output];
    }, other);
    const ids: JsonValue[] = [];
    for (const owner of [{}, { tenantId: "acme" }, { tenantId: "globex" }]) {
      const { output } = await (await runtime.submit(caller, null, owner)).result();
      const [runId, received] = output as readonly [string, JsonValue];
      expect(received).toBe("tenantId" in owner ? owner.tenantId : null);
      ids.push(runId);
    }
    expect(new Set(ids).size).toBe(3);
    const found = await runtime.forTenant({ tenantId: "acme" }).find("run_shared");
    expect(found?.runId).toBe(ids[1]);
  });

  declare(
    "start: ctx.start() refuses an unknown workflow, an agent, a wrong option and the id of its caller",
    async (world) => {
      const runtime = await world.open();
      const agent = agentOf("agent", async () => null);
      const codes: JsonValue[] = [];
      const caller = starting(async (ctx) => {
        const own = ctx.facts.runId;
        const calls = [
          () => ctx.start("nobody" as AgentId, null),
          () => ctx.start(agent.id, null),
          () => ctx.start("caller" as AgentId, null, { onParentEnd: "terminate" as never }),
          () => ctx.start("caller" as AgentId, null, { id: own }),
        ];
        for (const call of calls) codes.push(await call().then(String, ({ code }: Fault) => code));
        return null;
      }, agent);
      await (await runtime.submit(caller, null)).result();
      expect(codes).toEqual(["not_found", "invalid_argument", "invalid_argument", "invalid_argument"]);
    },
  );

  declare(
    "start: an endless chain of runs that start each other ends with invalid_argument",
    async (world) => {
      const runtime = await world.open();
      let deepest = 0;
      const deeper: HostedWorkflow<JsonValue> = workflowOf("deeper", async (ctx) => {
        deepest = Math.max(deepest, Number(ctx.input));
        const next = await ctx.start(deeper.id, Number(ctx.input) + 1);
        const { status, failure } = await ctx.join(next);
        if (status !== "completed") throw new Fault("child_failed", failure?.message ?? status);
        return null;
      });
      const run = await runtime.submit(deeper, 1);
      const { status, error } = await run.result();
      expect([status, deepest]).toEqual(["failed", 100]);
      expect(error?.message.includes("100 runs have started each other")).toBe(true);
    },
  );

  declare(
    "C1: onParentEnd cancels a started run when its caller completes, or lets it continue",
    async (world) => {
      const runtime = await world.open();
      const other = waiting();
      const caller = starting(async (ctx) => {
        await ctx.start(other.id, null, { id: "cancelled" });
        await ctx.start(other.id, null, { id: "abandoned", onParentEnd: "abandon" });
        return null;
      }, other);
      const run = await runtime.submit(caller, null);
      expect((await run.result()).status).toBe("completed");
      const cancelled = await startedBy(runtime, run, "cancelled");
      expect((await cancelled.result()).status).toBe("cancelled");
      const abandoned = await startedBy(runtime, run, "abandoned");
      await abandoned.signal("go", 7);
      expect((await abandoned.result()).output).toBe(7);
    },
  );

  declare("C1: cancelling a run cancels all runs that it has started, at any depth", async (world) => {
    const runtime = await world.open();
    const leaf = waiting();
    const middle = workflowOf(
      "middle",
      async (ctx) => (await ctx.join(await ctx.start(leaf.id, null, { id: "leaf" }))).output,
      { subAgents: [leaf] },
    );
    const caller = starting(
      async (ctx) => (await ctx.join(await ctx.start(middle.id, null, { id: "middle" }))).output,
      middle,
    );
    const run = await runtime.submit(caller, null);
    const between = await startedBy(runtime, run, "middle");
    const below = await startedBy(runtime, between, "leaf");
    await run.cancel("enough");
    expect((await run.result()).status).toBe("cancelled");
    expect((await below.result()).status).toBe("cancelled");
    expect((await between.result()).status).toBe("cancelled");
  });

  declare(
    "C1: a branch that loses a race cancels the runs that it started; a run whose handle loses a race continues",
    async (world) => {
      const runtime = await world.open();
      const other = waiting();
      const caller = starting(async (ctx) => {
        const kept = await ctx.start(other.id, null, { id: "kept" });
        const { winner } = await ctx.race<JsonValue>({
          lost: async (branch) =>
            (await branch.join(await branch.start(other.id, null, { id: "lost" }))).output,
          handle: async (branch) => (await branch.join(kept)).output,
          quick: async (branch) => (await branch.waitForSignal("win")) ?? null,
        });
        await ctx.waitForSignal("joined");
        return [winner, (await ctx.join(kept)).output];
      }, other);
      const run = await runtime.submit(caller, null);
      const lost = await startedBy(runtime, run, "lost");
      await run.signal("win");
      expect((await lost.result()).status).toBe("cancelled");
      await run.signal("joined");
      await (await startedBy(runtime, run, "kept")).signal("go", 3);
      expect((await run.result()).output).toEqual(["quick", 3]);
    },
  );

  declare("C1: ctx.cancel() cancels a run that was started in the same commit", async (world) => {
    const runtime = await world.open();
    const other = waiting();
    const caller = starting(async (ctx) => {
      await ctx.waitForSignal("begin");
      await ctx.race<JsonValue>({
        lost: async (branch) => (await branch.join(await branch.start(other.id, "lost"))).output,
        quick: async (branch) => (await branch.waitForSignal("win")) ?? null,
      });
      await ctx.cancel(await ctx.start(other.id, "cancelled"), "not needed");
      await ctx.start(other.id, "left");
      throw new FatalError("ended at once");
    }, other);
    const run = await runtime.submit(caller, null);
    await run.signal("win");
    await run.signal("begin");
    expect((await run.result()).status).toBe("failed");
    const started = await startedIn(run);
    const ends = started.map(async (runId) => (await (await runIn(runtime, { runId })).result()).status);
    expect(await Promise.all(ends)).toEqual(["cancelled", "cancelled", "cancelled"]);
  });

  declare("J5: resume() of a run resumes the started run whose failure ended it", async (world) => {
    const runtime = await world.open();
    let isBroken = true;
    const fragile = workflowOf("fragile", async (ctx) =>
      ctx.step("fragile", async () => {
        if (isBroken) throw new Fault("permission_denied", "broken");
        return "mended";
      }),
    );
    const caller = starting(async (ctx) => {
      const { status, output, failure } = await ctx.join(await ctx.start(fragile.id, null));
      if (status !== "completed") throw new Fault("child_failed", failure?.message ?? status);
      return output;
    }, fragile);
    const run = await runtime.submit(caller, null);
    const { status, error } = await run.result();
    expect([status, error?.message]).toEqual(["failed", "broken"]);
    isBroken = false;
    await run.resume();
    expect((await run.result()).output).toBe("mended");
    expect((await startedIn(run)).length).toBe(1);
  });

  declare("J5: resume() of a run resumes the started runs that its failure cancelled", async (world) => {
    const runtime = await world.open();
    let isBroken = true;
    const other = workflowOf("other", async (ctx) => {
      if (isBroken) await ctx.waitForSignal("never");
      return 9;
    });
    const caller = starting(async (ctx) => {
      const handle = await ctx.start(other.id, null, { id: "helper" });
      await ctx.step("fragile", async () => {
        if (isBroken) throw new Fault("permission_denied", "broken");
        return null;
      });
      return (await ctx.join(handle)).output;
    }, other);
    const run = await runtime.submit(caller, null);
    expect((await run.result()).status).toBe("failed");
    const helper = await startedBy(runtime, run, "helper");
    expect((await helper.result()).status).toBe("cancelled");
    isBroken = false;
    await run.resume();
    expect((await run.result()).output).toBe(9);
  });

  declare(
    "J5: resume() of a run receives the outcome of a started run that has undone its work",
    async (world) => {
      const runtime = await world.open();
      let isBroken = true;
      const undoing = workflowOf("undoing", async (ctx) => {
        await ctx.compensate("undo", async () => null);
        if (ctx.input === "fails") throw new FatalError("declined");
        await ctx.waitForSignal("never");
      });
      const caller = starting(async (ctx) => {
        const handle = await ctx.start(undoing.id, "waits", { id: "cancelled-with-caller" });
        const failed = await ctx.join(await ctx.start(undoing.id, "fails"));
        if (isBroken) throw new Fault("child_failed", failed.failure?.message ?? "");
        return [failed.status, (await ctx.join(handle)).status];
      }, undoing);
      const run = await runtime.submit(caller, null);
      expect((await run.result()).error?.message).toBe("declined");
      const other = await startedBy(runtime, run, "cancelled-with-caller");
      expect((await other.result()).status).toBe("cancelled");
      isBroken = false;
      await run.resume();
      expect((await run.result()).output).toEqual(["failed", "cancelled"]);
    },
  );

  declare("fork: a fork receives the end of the run that its origin started", async (world) => {
    const runtime = await world.open();
    const other = double();
    const caller = starting(async (ctx) => {
      const handle = await ctx.start(other.id, 4);
      await ctx.step("cut", async () => null);
      return (await ctx.join(handle)).output;
    }, other);
    const run = await runtime.submit(caller, null);
    expect((await run.result()).output).toBe(8);
    const cut = (await eventsOf(run)).find(({ type }) => type === "step_end")?.seq ?? 0;
    const fork = await run.fork({ at: cut });
    expect((await fork.result()).output).toBe(8);
    expect((await startedIn(fork)).length).toBe(1);
  });
}

/** Cases about the part of a budget that a started run may spend. */
export function partCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);
  const talk = Transcript.of([userMessage("hello")]);
  const spending = (): HostedWorkflow<JsonValue> =>
    workflowOf(
      "spending",
      async (ctx) => {
        await ctx.llm({ transcript: talk, maxOutputTokens: 20 });
        return ctx.usage.inputTokens + ctx.usage.outputTokens;
      },
      { models: { main: scriptedModel(["hi"]) } },
    );

  declare(
    "B6: ctx.start() reserves the budget that it names for the started run, which is charged only what it has spent",
    async (world) => {
      const runtime = await world.open();
      const other = spending();
      const caller = workflowOf(
        "caller",
        async (ctx) => {
          const root = (): Account | undefined => ctx.snapshot.ledger.accounts[rootTaskId];
          const refused = await ctx.start(other.id, null).catch(({ code }: Fault) => code as string);
          const run = await ctx.start(other.id, null, { budget: { maxTokens: 600 } });
          const reserved = await ctx.step("reserved", async () => root()?.reserved.tokens ?? -1);
          const { output } = await ctx.join(run);
          const left = await ctx.step("left", async () => root()?.reserved.tokens ?? -1);
          const spent = await ctx.step("spent", async () => root()?.spent.tokens ?? -1);
          const tooMuch = await ctx
            .start(other.id, null, { budget: { maxTokens: 1_000 } })
            .catch(({ code }: Fault) => code as string);
          return [refused as JsonValue, reserved, left, output === spent && spent > 0, tooMuch as JsonValue];
        },
        { subAgents: [other], budget: { maxTokens: 1_000 } },
      );
      const run = await runtime.submit(caller, null);
      const { output, usage, turns } = await run.result();
      expect(output).toEqual(["invalid_argument", 600, 0, true, "budget_exhausted"]);
      // The other run reports its usage itself.
      expect([usage.outputTokens, turns]).toEqual([0, 0]);
    },
  );

  declare(
    "B6: budget that is reserved for a started run survives a change of the owner, and a second reservation waits for its end",
    async (world) => {
      const other = workflowOf("other", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
      const calling = (): HostedAgent =>
        workflowOf(
          "caller",
          async (ctx) => {
            const options = { budget: { maxTokens: 6 } };
            const first = await ctx.start(other.id, null, { ...options, id: "first" });
            const second = await ctx.start(other.id, null, { ...options, id: "second" });
            return [(await ctx.join(first)).output, (await ctx.join(second)).output];
          },
          { subAgents: [other], budget: { maxTokens: 10 } },
        );
      const one = await world.open("one");
      const run = await one.submit(calling(), null);
      await suspended(run, "t0");
      const { waitsFor } = await run.summary();
      expect(waitsFor).toEqual(["budget"]);
      await one.close();
      const next = await world.open("two");
      next.register(calling());
      const two = await runIn(next, run);
      const first = await startedBy(next, two, "first");
      await first.signal("go", 1);
      const second = await startedBy(next, two, "second");
      await second.signal("go", 2);
      expect((await two.result()).output).toEqual([1, 2]);
    },
  );
}

/** Cases about `any` and `map`. */
export function branchCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare(
    "any: the first branch that succeeds wins, and the error lists all faults if no branch succeeds",
    async (world) => {
      const runtime = await world.open();
      const failing = async (): Promise<never> => Promise.reject(new Fault("permission_denied", "no"));
      const worker = agentOf("worker", async (ctx) => {
        const first = await ctx.any<JsonValue>({
          failing: (branch) => branch.step("fail", failing),
          slow: async (branch) => (await branch.waitForSignal("never")) ?? null,
          quick: (branch) => branch.step("quick", async () => 5),
        });
        const none = await ctx
          .any({ a: (branch) => branch.step("a", failing), b: (branch) => branch.step("b", failing) })
          .catch(({ code, details }: Fault) => [code, details?.["branches"] ?? null]);
        return [first, none];
      });
      const { output } = await (await runtime.submit(worker, null)).result();
      const fault = { code: "permission_denied", message: "no" };
      expect(output).toEqual([
        { winner: "quick", value: 5 },
        [
          "permission_denied",
          [
            { branch: "a", ...fault },
            { branch: "b", ...fault },
          ],
        ],
      ]);
    },
  );

  declare("map: a failed item has its error as result, and `concurrency` limits items", async (world) => {
    const runtime = await world.open();
    let most = 0;
    const worker = agentOf("worker", async (ctx) => {
      const active = new Set<number>();
      const results = await ctx.map(
        [1, 2, 3, 4, 5],
        async (item, branch, index) => {
          most = Math.max(most, active.add(item).size);
          await branch.sleep(1);
          const settled = branch.step(`item ${item}`, async () => {
            if (item === 3) throw new Fault("permission_denied", "three");
            return item * 10 + index;
          });
          return settled.finally(() => active.delete(item));
        },
        { concurrency: 2 },
      );
      return results as unknown as JsonValue;
    });
    const { output } = await (await runtime.submit(worker, null)).result();
    const fulfilled = (value: number): JsonValue => ({ status: "fulfilled", value });
    const reason = { code: "permission_denied", message: "three" };
    expect([output, most <= 2]).toEqual([
      [fulfilled(10), fulfilled(21), { status: "rejected", reason }, fulfilled(43), fulfilled(54)],
      true,
    ]);
  });

  declare(
    "map: the next worker repeats no recorded item, and resume() repeats the items whose error the code did not handle",
    async (world) => {
      const performed: string[] = [];
      let isBroken = true;
      const worker = (): HostedAgent =>
        agentOf("worker", async (ctx) => {
          const results = await ctx.map(["a", "b", "c"], async (item, branch) => {
            if (item === "c") await branch.waitForSignal("go");
            return branch.step(item, async () => {
              performed.push(item);
              if (item === "b" && isBroken) throw new Fault("permission_denied", "broken");
              return item;
            });
          });
          for (const result of results) if (result.status === "rejected") throw result.reason;
          return results.map((result) => (result.status === "fulfilled" ? result.value : null));
        });
      const one = await world.open("one");
      const run = await one.submit(worker(), null);
      await suspended(run, "t0");
      const taken = await world.takeOver(one, run, worker());
      await taken.signal("go");
      const { error } = await taken.result();
      expect([error?.code, error?.message]).toEqual(["permission_denied", "broken"]);
      expect(performed).toEqual(["a", "b", "c"]);
      isBroken = false;
      await taken.resume();
      expect((await taken.result()).output).toEqual(["a", "b", "c"]);
      expect(performed).toEqual(["a", "b", "c", "b"]);
    },
  );

  declare(
    "J5: resume() resumes a child whose failure ended an item of map, but no child whose failure the item handled",
    async (world) => {
      const runtime = await world.open();
      const performed: string[] = [];
      let isBroken = true;
      const child = agentOf("child", async (ctx) => {
        const { input } = ctx;
        return ctx.step("work", async () => {
          performed.push(input as string);
          if (input !== "a" && isBroken) throw new Fault("permission_denied", "broken");
          return input;
        });
      });
      const parent = agentOf(
        "parent",
        async (ctx) => {
          const results = await ctx.map(["a", "b", "c"], async (input, branch) => {
            const { output, failure } = await branch.join(await spawnChild(branch, child, { input }));
            if (failure !== null && input === "b") throw reviveFault(failure);
            return failure === null ? output : "handled";
          });
          for (const result of results) if (result.status === "rejected") throw result.reason;
          return results.map((result) => (result.status === "fulfilled" ? result.value : null));
        },
        { subAgents: [child] },
      );
      const run = await runtime.submit(parent, null);
      expect((await run.result()).error?.message).toBe("broken");
      isBroken = false;
      await run.resume();
      expect((await run.result()).output).toEqual(["a", "b", "handled"]);
      expect(performed.toSorted()).toEqual(["a", "b", "b", "c"]);
    },
  );

  declare(
    "J5: resume() repeats an item of a nested map if the code did not handle its error, and no other item",
    async (world) => {
      const runtime = await world.open();
      const performed: string[] = [];
      let isBroken = true;
      const worker = agentOf("worker", async (ctx) => {
        const results = await ctx.map(["a", "b"], async (outer, branch) => {
          const votes = await branch.map([1, 2], (inner, each) =>
            each.step(`${outer}${inner}`, async () => {
              performed.push(`${outer}${inner}`);
              if (inner === 2 && isBroken) throw new Fault("permission_denied", "broken");
              return inner;
            }),
          );
          if (outer === "a") return "handled";
          for (const vote of votes) if (vote.status === "rejected") throw reviveFault(vote.reason);
          return "all";
        });
        for (const result of results) if (result.status === "rejected") throw result.reason;
        return results.map((result) => (result.status === "fulfilled" ? result.value : null));
      });
      const run = await runtime.submit(worker, null);
      expect((await run.result()).error?.message).toBe("broken");
      isBroken = false;
      await run.resume();
      expect((await run.result()).output).toEqual(["handled", "all"]);
      expect(performed.toSorted()).toEqual(["a1", "a2", "b1", "b2", "b2"]);
    },
  );
}
