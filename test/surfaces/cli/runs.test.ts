import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  Agent,
  openRuntime,
  openStore,
  OrchestratorAgent,
  tool,
  type RunHandle,
} from "../../../src/entries/index.ts";
import {
  formatAgentId,
  formatRunId,
  rootTaskId,
  type CrashLoop,
  type Event,
  type HostedAgent,
  type Lease,
  type Runtime,
} from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { reeve } from "./reeve-process.ts";

const prices = { find: () => ({ inputUsd: 1e-6, outputUsd: 2e-6 }) };
const erase = tool({
  name: "erase",
  description: "Erases a disk",
  inputSchema: { type: "object", properties: { disk: { type: "string" } }, required: ["disk"] } as const,
  needsApproval: true,
  execute: ({ disk }) => `erased ${disk}\nand checked it`,
});
const erasing = { toolCalls: [{ name: "erase", input: { disk: "sda" } }] };

/** A store with a runtime of this process that executes its runs, and the command line on the same store. */
async function desk() {
  const folder = await mkdtemp(join(tmpdir(), "reeve-runs-"));
  const store = `sqlite:${join(folder, "reeve.db")}` as const;
  const runtime = await openRuntime({ store, prices });
  onTestFinished(async () => {
    await runtime.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  const cli = (...args: string[]): ReturnType<typeof reeve> => reeve([...args, "--store", store]);
  let count = 0;
  /** Starts a run that waits for approval. */
  const waiting = async (runId: string): Promise<RunHandle> => {
    const model = scriptedModel([erasing, "Done."]);
    const agent = new Agent({ name: `clerk${++count}`, model, tools: [erase] });
    const run = await agent.submit("Erase the disk", { runtime, runId });
    for await (const event of run.events()) if (event.type === "task_suspend") break;
    return run;
  };
  return { runtime, cli, waiting, address: store };
}

test.each([["trust"], ["ps", "--status"], ["ps", "--limit"]])(
  "an error of reeve %s shows the characters that an argument hides",
  async (...args) => {
    const { talk } = await reeve([...args, "x\u202etxt\u001b[31m"]);
    expect(talk).toContain(String.raw`x\u202etxt\u001b[31m`);
    // oxlint-disable-next-line no-control-regex -- the codes that must not reach the terminal
    expect(talk).not.toMatch(/[\u001b\u202e]/u);
  },
);

test("reeve show --request lists the model calls of a run and prints the request of one call, without terminal codes", async () => {
  const { runtime, cli } = await desk();
  const hostile = "Erase \u001b[31mall\u202e <b>disks</b>";
  const agent = new Agent({
    name: "clerk",
    model: scriptedModel(["Done."]),
    tools: [erase],
    instructions: hostile,
  });
  const { runId } = await agent.invoke(hostile, { runtime });
  const listed = await cli("show", runId, "--request", "--json");
  const call = JSON.parse(listed.out[0] ?? "{}") as { seq: number; role: string };
  expect([listed.code, listed.out.length, call.role]).toEqual([0, 1, "main"]);
  const { code, out } = await cli("show", runId, "--request", String(call.seq));
  expect(code).toBe(0);
  const text = out.join("\n");
  expect(text).toMatch(/instructions\n {2}Erase .*all.*\n+tools\n {2}erase: Erases a disk\n/u);
  expect(text).toContain('"required":["disk"]');
  // oxlint-disable-next-line no-control-regex -- the codes that must not reach the terminal
  expect(text).not.toMatch(/[\u001b\u202e]/u);
  const refused = await cli("show", runId, "--request", "0");
  expect([refused.code, refused.talk]).toEqual([
    2,
    expect.stringContaining("is run_start; expected the seq"),
  ]);
});

test("reeve --version prints the version of the package", async () => {
  const { code, out } = await reeve(["--version"]);
  expect({ code, out }).toEqual({ code: 0, out: ["0.0.0"] });
});

describe("reeve ps", () => {
  test("reeve ps lists the runs that have not ended with what they wait for, and with --all also ended runs", async () => {
    const { cli, waiting, runtime } = await desk();
    await waiting("run_waits");
    await new Agent({ name: "quick", model: scriptedModel(["Yes."]) }).invoke("?", {
      runtime,
      runId: "run_done",
    });
    const open = await cli("ps");
    expect(open.code).toBe(0);
    expect(open.out).toEqual([expect.stringMatching(/^run_waits {2}waiting \(person\) {2}.* clerk1$/u)]);
    const all = await cli("ps", "--all", "--json");
    expect(all.out.map((line) => (JSON.parse(line) as { status: string }).status)).toEqual([
      "completed",
      "waiting",
    ]);
    expect((await cli("ps", "--status", "completed")).out).toEqual([expect.stringContaining("run_done")]);
    expect((await cli("ps", "--all", "--limit", "1")).talk).toContain("Only the newest 1 are shown");
  });

  test("reeve ps and reeve show print the scores of runs, and --where finds runs by them", async () => {
    const { runtime, cli } = await desk();
    const clerk = new Agent({ name: "clerk", model: scriptedModel(["Done.", "Done."]) });
    for (const runId of ["run_good", "run_plain"])
      await (await clerk.submit("Go", { runtime, runId })).result();
    await (await runtime.find("run_good"))?.score({ name: "thumbs", value: 1, by: "ann" });
    expect((await cli("ps", "--all", "--where", "score.thumbs>0.5")).out).toEqual([
      expect.stringMatching(/run_good .* thumbs 1 \(ann\)$/u),
    ]);
    expect((await cli("ps", "--all", "--where", "score.thumbs<0.5")).out).toEqual([]);
    expect((await cli("show", "run_good")).out.join("\n")).toMatch(/^scores +thumbs 1 \(ann\)$/mu);
  });

  test("reeve ps, show and steer name the machine of a bound run, and reeve cancel ends the run from another machine", async () => {
    const { cli, address, runtime } = await desk();
    await runtime.close();
    const there = await openRuntime({ store: address, host: "build-1" });
    const keeper: HostedAgent = {
      id: formatAgentId({ name: "keeper" }),
      run: async (ctx) => {
        ctx.stayOnHost("files");
        await ctx.waitForSignal("go");
      },
    };
    const run = await there.submit(keeper, null, { runId: "run_bound" });
    for await (const event of run.events()) if (event.type === "task_suspend") break;
    await there.close();
    const waits = "run_bound waits for a worker of the machine build-1";
    expect((await cli("steer", "run_bound", "Go on.")).talk).toContain(waits);
    expect((await cli("ps")).out).toEqual([
      expect.stringMatching(/^run_bound {2}pending \(host build-1\) /u),
    ]);
    const shown = (await cli("show", "run_bound")).out.join("\n");
    for (const words of [
      "pending (waits for: host build-1)",
      "machine  build-1",
      "waits    it has left files on build-1, where no worker executes it now: start reeve worker or reeve run --resume there, or end it with reeve cancel run_bound",
    ])
      expect(shown).toContain(words);
    await cli("cancel", "run_bound");
    expect((await cli("ps", "--all")).out).toEqual([expect.stringContaining("run_bound  cancelled")]);
  });

  test("reeve ps shows a run whose process is dead as pending and a crash loop as paused, and reeve show explains both", async () => {
    const { cli, address, runtime } = await desk();
    // No process hosts this agent afterwards, and none takes the run of a worker that does not exist.
    await runtime.close();
    const maker = await openRuntime({ store: address });
    const agent = new Agent({ name: "maker", model: scriptedModel([]) });
    const startAt = Date.now() + 3_600_000;
    for (const runId of ["run_left", "run_loop"]) await agent.submit("?", { runtime: maker, runId, startAt });
    await maker.close();
    const store = await openStore(address);
    onTestFinished(() => store.close());
    const [left, loop] = [formatRunId("left"), formatRunId("loop")];
    await store.leases.seize(left, "ghost");
    const lease = (await store.leases.seize(loop, "ghost")) as Lease;
    const owner = { workerId: "w1", registration: "7", host: "box", at: 1_000, hasEnded: true };
    const crashLoop: CrashLoop = {
      limit: 5,
      ended: [owner, { ...owner, workerId: "w2" }],
      unknown: [{ ...owner, workerId: "w3", host: null, hasEnded: false }],
      calls: [{ taskId: rootTaskId, kind: "tool", name: "explode" }],
    };
    const seq = (await store.events.lastSeq(loop)) + 1;
    const who = {
      runId: loop,
      taskId: rootTaskId,
      agentId: formatAgentId({ name: "maker" }),
      parentId: null,
    };
    const events: Event[] = [
      { seq, ...who, type: "run_recover", at: 2_000, data: { epoch: 5, owner: "w4", recoveries: 2 } },
      { seq: seq + 1, ...who, type: "run_pause", at: 2_000, data: { by: "w4", crashLoop } },
    ];
    const standing = { status: "paused", waitsFor: ["crash_loop"] } as const;
    await store.journal.append(lease, { number: 1, at: 2_000, events, standing });
    await store.leases.release(lease, { kind: "suspended", wakeAt: null });
    expect((await cli("ps")).out).toEqual([
      expect.stringMatching(/^run_loop {2}paused \(crash_loop\) /u),
      expect.stringMatching(/^run_left {2}pending \(worker\) /u),
    ]);
    expect((await cli("ps", "--status", "running")).out).toEqual([]);
    const shown = (await cli("show", "run_loop")).out.join("\n");
    for (const words of [
      "paused (waits for: crash_loop)",
      "2 processes ended while executing this run, in a row and without progress of it",
      "if reeve run started it, with reeve run --resume run_loop",
      "Ended: worker w2 on box, noticed 1970-01-01T00:00:01.000Z.",
      "Unknown: worker w3 on an unknown machine",
      "In flight at the last loss: tool explode of t0.",
    ])
      expect(shown).toContain(words);
    const logged = (await cli("logs", "run_loop")).out;
    expect(logged.slice(-2)).toEqual([
      expect.stringContaining("is taken over by another process"),
      expect.stringContaining("is paused as a crash loop: 2 processes"),
    ]);
    expect(JSON.parse((await cli("show", "run_loop", "--json")).out[0] ?? "")).toMatchObject({ crashLoop });
  });

  test("reeve ps refuses an unknown status and names the nearest one", async () => {
    const { cli } = await desk();
    const { code, talk } = await cli("ps", "--status", "wait");
    expect(code).toBe(2);
    expect(talk).toContain('use "waiting"');
  });
});

describe("the id of a run on the command line", () => {
  test("a run id on the command line may be shortened to a prefix that no other run has", async () => {
    const { cli, waiting } = await desk();
    await waiting("run_alpha");
    await waiting("run_alps");
    expect((await cli("show", "run_alpha")).out[0]).toBe("run      run_alpha");
    expect((await cli("show", "run_alph")).out[0]).toBe("run      run_alpha");
    const ambiguous = await cli("show", "run_alp");
    expect(ambiguous.code).toBe(2);
    expect(ambiguous.talk).toContain("run_alp is ambiguous: run_alps, run_alpha; use more characters");
    const unknown = await cli("audit", "log", "run_beta");
    expect(unknown.code).toBe(3);
    expect(unknown.talk).toMatch(
      /run run_beta not found in sqlite:.*; reeve ps --all lists its runs, and --store chooses another store/u,
    );
    expect((await cli("audit", "log", "run_alph")).code).toBe(0);
    expect((await cli("audit", "verify", "run_alph")).out[0]).toMatch(/^run_alpha {2}ok/u);
  });

  test("a run id on the command line is whole if a run has exactly this id, although it is a prefix of another id", async () => {
    const { cli, waiting } = await desk();
    await waiting("run_a");
    await waiting("run_ab");
    expect((await cli("show", "run_a")).out[0]).toBe("run      run_a");
  });
});

describe("reeve show, tree and cost", () => {
  test("reeve show, tree and cost agree with the result of a run of a team", async () => {
    const { cli, runtime } = await desk();
    const helper = new Agent({ name: "helper", model: scriptedModel(["Seven."], { modelId: "small" }) });
    const handOff = { toolCalls: [{ name: "handoff_helper", input: { task: "How many?" } }] };
    const lead = new OrchestratorAgent({
      name: "lead",
      model: scriptedModel([handOff, "It is seven."]),
      subAgents: [helper],
    });
    const { costUsd, usage } = await lead.invoke("How many?", { runtime, runId: "run_team" });
    const { total, byAgent } = JSON.parse((await cli("cost", "run_team", "--json")).out[0] ?? "") as {
      readonly total: { readonly calls: number; readonly costUsd: number; readonly usage: typeof usage };
      readonly byAgent: readonly {
        readonly agentId: string;
        readonly calls: number;
        readonly model: string;
      }[];
    };
    expect(total.costUsd).toBeCloseTo(costUsd ?? Number.NaN, 12);
    expect(total.usage).toMatchObject({ inputTokens: usage.inputTokens, outputTokens: usage.outputTokens });
    expect(byAgent.map(({ agentId, calls, model }) => [agentId, calls, model])).toEqual([
      ["lead", 2, "scripted/script"],
      ["helper", 1, "scripted/small"],
    ]);
    expect((await cli("cost", "run_team")).out.at(-1)).toMatch(/^total +3 /u);
    expect((await cli("tree", "run_team")).out).toEqual(["lead  t0  completed", "└─ helper  t1  completed"]);
    const shown = await cli("show", "run_team");
    expect(shown.out).toContain("status   completed");
    expect(shown.out.at(-1)).toBe("It is seven.");
  });

  test("reeve show prints the request that a run waits for, and the error of a failed run", async () => {
    const { cli, waiting, runtime } = await desk();
    await waiting("run_waits");
    const { out } = await cli("show", "run_waits");
    expect(out).toContain("status   waiting (waits for: person)");
    expect(out).toContain('  erase {"disk":"sda"}');
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const broken = new Agent({ name: "broken", model: scriptedModel([{ error }]) });
    await broken.invoke("?", { runtime, runId: "run_broken" });
    expect((await cli("show", "run_broken")).out).toContain(
      "error    model_auth: scripted/script failed with HTTP 401: bad key",
    );
  });
});

describe("reeve logs", () => {
  test("reeve logs prints what happened so far, and with -f also what happens until the run ends", async () => {
    const { cli, waiting } = await desk();
    const run = await waiting("run_waits");
    const before = await cli("logs", "run_waits");
    expect(before.out.at(-1)).toContain('erase {"disk":"sda"}');
    const following = cli("logs", "-f", "run_waits");
    await run.approve(await approvalOf(run), { decision: "approved" });
    const { code, out } = await following;
    expect(code).toBe(0);
    expect(out.join("\n")).toMatch(
      /erase returned: erased sda \(\+1 line\)[^]*says: Done\.[^]*ends \(completed\)/u,
    );
  });
});

describe("reeve cancel", () => {
  test("reeve cancel cancels a run that another process executes, and leaves an ended run unchanged", async () => {
    const { cli, waiting } = await desk();
    const run = await waiting("run_waits");
    const { code, out } = await cli("cancel", "run_w", "--reason", "no longer needed");
    expect({ code, out }).toEqual({ code: 0, out: ["run_waits"] });
    expect(await run.result()).toMatchObject({ status: "cancelled", interruptionReason: "no longer needed" });
    const again = await cli("cancel", "run_waits");
    expect(again).toMatchObject({ code: 0, out: [], talk: "run_waits has ended already (cancelled).\n" });
  });
});

describe("orders to runs on the command line", () => {
  test("reeve pause, resume and top-up change a run that another process executes, and print the run's id", async () => {
    const { cli, runtime } = await desk();
    const model = scriptedModel([erasing, "Done."]);
    const agent = new Agent({ name: "clerk", model, tools: [erase], budget: { maxTurns: 1 } });
    const run = await agent.submit("Erase the disk", { runtime, runId: "run_p" });
    await run.untilPersonIsNeeded();
    const becomes = async (status: string): Promise<void> => {
      await expect.poll(async () => (await run.summary()).status).toBe(status);
    };
    expect(await cli("pause", "run_p")).toMatchObject({ code: 0, out: ["run_p"], talk: "" });
    await becomes("paused");
    expect(await cli("resume", "run_p", "--json")).toMatchObject({ code: 0, out: ['{"runId":"run_p"}'] });
    await becomes("waiting");
    await cli("approve", "run_p", "--yes");
    await becomes("budget_exhausted");
    expect((await cli("pause", "run_p")).talk).toBe("run_p has ended already (budget_exhausted).\n");
    expect((await cli("top-up", "run_p")).talk).toContain("missing amount; use --usd, --turns");
    expect((await cli("top-up", "run_p", "--turns", "none")).talk).toContain(
      "invalid --turns none: expected a number above 0",
    );
    expect(await cli("top-up", "run_p", "--turns", "1")).toMatchObject({ code: 0, out: ["run_p"] });
    await becomes("completed");
    expect((await cli("top-up", "run_p", "--turns", "1")).talk).toContain(
      "run_p has ended (completed); a top-up continues only a run that stopped at its budget or deadline",
    );
    expect(await cli("resume", "run_p")).toMatchObject({ code: 2, out: [] });
  });

  test("reeve resume continues a failed run, and refuses a run that has nothing left to repeat", async () => {
    const { cli, runtime } = await desk();
    const limited = new Agent({
      name: "limited",
      model: scriptedModel([erasing]),
      tools: [erase],
      maxTurns: 1,
    });
    const stopped = await limited.submit("Erase the disk", { runtime, runId: "run_l" });
    await stopped.untilPersonIsNeeded();
    await cli("approve", "run_l", "--yes");
    expect(await stopped.result()).toMatchObject({ status: "max_turns" });
    expect((await cli("resume", "run_l")).talk).toContain(
      `run_l has ended (max_turns) and cannot be resumed; continue its session with reeve run "..." --session`,
    );
    let fails = true;
    const step: HostedAgent = {
      id: formatAgentId({ name: "step" }),
      run: (ctx) =>
        ctx.step("try", async () => {
          if (fails) throw new Error("the disk is busy");
          return "done";
        }),
    };
    const failed = await runtime.submit(step, null, { runId: formatRunId("f") });
    expect(await failed.result()).toMatchObject({ status: "failed" });
    fails = false;
    expect(await cli("resume", "run_f")).toMatchObject({ code: 0, out: ["run_f"] });
    await expect.poll(async () => (await failed.summary()).status).toBe("completed");
  });

  test("reeve cancel says so if no process executes the run", async () => {
    const { cli, runtime, waiting } = await desk();
    await waiting("run_q");
    await runtime.close();
    const { code, out, talk } = await cli("cancel", "run_q");
    const notice = "No process executes run_q now; it is cancelled when one resumes it.\n";
    expect([code, out, talk]).toEqual([0, ["run_q"], notice]);
  });

  const orders: readonly (readonly [string, readonly string[]])[] = [
    ["cancel", []],
    ["pause", []],
    ["resume", []],
    ["top-up", ["--usd", "1"]],
    ["reprioritize", ["HIGH"]],
    ["steer", ["Faster."]],
    ["withdraw", []],
    ["fork", ["--at", "0"]],
  ];
  test.each(orders)(
    "reeve %s has examples in its help, and refuses an unknown option and an unknown run",
    async (command, args) => {
      const { cli } = await desk();
      const help = await cli(command, "--help");
      expect([help.code, help.out.join("\n")]).toEqual([
        0,
        expect.stringContaining(`$ reeve ${command} run_7f`),
      ]);
      expect(await cli(command, "run_none", ...args, "--nonsense")).toMatchObject({ code: 2, out: [] });
      const missing = await cli(command, "run_none", ...args, "--json");
      expect([missing.code, missing.out, missing.talk]).toEqual([3, [], expect.stringContaining("run_none")]);
    },
  );
});

describe("orders to tasks of a run on the command line", () => {
  /** Starts a run whose two children wait for steering. */
  async function team(runtime: Runtime): Promise<RunHandle> {
    const scout: HostedAgent = {
      id: formatAgentId({ name: "scout" }),
      run: async (ctx) => {
        await ctx.waitForSignal("go");
        return [...(await ctx.steering()), ...(await ctx.followUps())];
      },
    };
    const lead: HostedAgent = {
      id: formatAgentId({ name: "lead" }),
      subAgents: [scout],
      run: async (ctx) => {
        const hired = [await ctx.spawn(scout.id, "one"), await ctx.spawn(scout.id, "two")];
        const handles = hired.flatMap((each) => (each.kind === "refused" ? [] : [each.handle]));
        return (await ctx.joinAll(handles)).map(({ status, output }) => [status, output ?? null]);
      },
    };
    const run = await runtime.submit(lead, null, { runId: formatRunId("team") });
    const waiting = new Set(["t0", "t1", "t2"]);
    for await (const event of run.events()) {
      if (event.type === "task_suspend") waiting.delete(event.taskId);
      if (waiting.size === 0) break;
    }
    return run;
  }

  test("reeve reprioritize changes the priority of the task that --task names, and refuses an unknown priority", async () => {
    const { cli, runtime } = await desk();
    const run = await team(runtime);
    expect((await cli("reprioritize", "run_team", "URGENT", "--task", "t2")).talk).toContain("URGENT");
    const changed = await cli("reprioritize", "run_team", "high", "--task", "t2");
    expect(changed).toMatchObject({ code: 0, out: ["run_team"] });
    const changes: unknown[] = [];
    for await (const event of run.events({ types: ["task_reprioritize"] })) {
      changes.push(event);
      break;
    }
    expect(changes).toMatchObject([{ data: { taskId: "t2", to: 4 } }]);
    await cli("cancel", "run_team");
  });

  test("reeve steer and reeve cancel reach the task that --task or --agent names", async () => {
    const { cli, runtime } = await desk();
    const run = await team(runtime);
    const many = await cli("steer", "run_team", "Faster.", "--agent", "scout");
    expect(many).toMatchObject({ code: 2, out: [] });
    expect(many.talk).toContain("has 2 live tasks of scout: t1, t2; reeve tree run_team lists its tasks");
    expect((await cli("cancel", "run_team", "--agent", "nurse")).talk).toContain("has no live task of nurse");
    expect(await cli("cancel", "run_team", "--task", "t2")).toMatchObject({ code: 0, out: ["run_team"] });
    for await (const event of run.events()) if (event.type === "task_end") break;
    const one = await cli("steer", "run_team", "Faster.", "--agent", "scout");
    expect(one).toMatchObject({ code: 0, out: ["run_team"] });
    await cli("steer", "run_team", "Then rest.", "--task", "t1", "--follow-up");
    await run.signal("go", null, "t1");
    const { output } = await run.result();
    expect(output).toEqual([
      ["completed", ["Faster.", "Then rest."]],
      ["cancelled", null],
    ]);
    expect((await cli("steer", "run_team", "Late.", "--task", "t1")).talk).toContain(
      "task t1 of run run_team has ended (completed)",
    );
  });
});

test("reeve withdraw lists inputs, takes one back, and says which inputs came too late or got no answer", async () => {
  const { cli, runtime } = await desk();
  const reader: HostedAgent = {
    id: formatAgentId({ name: "reader" }),
    run: async (ctx) => {
      await ctx.waitForSignal("go");
      const read = await ctx.steering();
      await ctx.waitForSignal("end");
      return [...read, ...(await ctx.steering())];
    },
  };
  const run = await runtime.submit(reader, null, { runId: formatRunId("reader") });
  for await (const event of run.events()) if (event.type === "task_suspend") break;
  const steered = await cli("steer", "run_reader", "Faster.\u001b[31m", "--json");
  const { inputId } = JSON.parse(steered.out[0] ?? "{}") as { readonly inputId: string };
  await run.steer("Slower.");
  await expect.poll(async () => (await run.queuedInput()).length).toBe(2);
  const listed = await cli("withdraw", "run_reader");
  expect(listed).toMatchObject({
    code: 0,
    out: [`${inputId}  t0  steering  Faster.\\u001b[31m`, expect.stringContaining("Slower.")],
  });
  const gone = await cli("withdraw", "run_reader", inputId.slice(0, -1), "--json");
  expect([gone.code, JSON.parse(gone.out[0] ?? "{}")]).toEqual([
    0,
    { runId: "run_reader", inputId, isWithdrawn: true },
  ]);
  const [slower] = await run.queuedInput();
  await run.signal("go");
  await expect.poll(() => run.queuedInput()).toEqual([]);
  const late = await cli("withdraw", "run_reader", slower?.inputId ?? "");
  expect([late.code, late.talk]).toEqual([3, expect.stringContaining("came too late to withdraw")]);
  const last = await run.steer("Stop.");
  await runtime.close();
  const unanswered = await cli("withdraw", "run_reader", last, "--wait", "1");
  expect([unanswered.code, unanswered.talk]).toEqual([
    7,
    expect.stringContaining("the same command asks again"),
  ]);
  expect(await cli("withdraw", "run_reader", last, "--wait", "soon")).toMatchObject({ code: 2, out: [] });
  expect(await cli("withdraw", "run_reader", "unknown")).toMatchObject({ code: 3, out: [] });
});

describe("reeve approve", () => {
  test("reeve approve lists the open requests of all runs, and first the request that has waited longest", async () => {
    const { cli, waiting } = await desk();
    expect((await cli("approve")).talk).toContain("No run waits for an approval.");
    await waiting("run_one");
    await waiting("run_two");
    const { out, talk } = await cli("approve");
    expect(out.filter((line) => line.startsWith("run_")).map((line) => line.split("  ")[0])).toEqual([
      "run_one",
      "run_two",
    ]);
    expect(talk).toContain("Open requests: 2.");
    expect(
      (await cli("approve", "--json")).out.map((line) => (JSON.parse(line) as { toolName: string }).toolName),
    ).toEqual(["erase", "erase"]);
  });

  test.each([
    { flags: ["--yes"], decision: "approved", result: "erased sda" },
    { flags: ["--deny", "not today"], decision: "denied", result: "not today" },
  ])(
    "reeve approve answers the requests of one run with $flags, in another process than that of the run",
    async (example) => {
      const { cli, waiting } = await desk();
      const run = await waiting("run_one");
      await waiting("run_two");
      const { code, out } = await cli("approve", "run_one", ...example.flags);
      expect(code).toBe(0);
      expect(out).toEqual([expect.stringMatching(new RegExp(`^run_one .* ${example.decision}$`, "u"))]);
      expect((await run.result()).status).toBe("completed");
      const log = (await cli("logs", "run_one")).out.join("\n");
      expect(log).toContain(example.result);
      expect((await cli("ps")).out).toEqual([expect.stringContaining("run_two")]);
    },
  );

  test("reeve approve leaves a request open if there is no terminal to ask at and no answer is given", async () => {
    const { cli, waiting } = await desk();
    await waiting("run_one");
    const { code, out, talk } = await cli("approve", "run_one");
    expect({ code, out }).toEqual({ code: 0, out: [] });
    expect(talk).toContain("stays open; --yes allows it, --deny refuses it");
    expect((await cli("ps")).out).toEqual([expect.stringContaining("waiting (person)")]);
  });

  test.each([
    { args: ["--yes"], says: "missing RUN" },
    { args: ["run_one", "--yes", "--deny"], says: "--yes and --deny cannot be combined" },
  ])("reeve approve refuses the arguments $args", async ({ args, says }) => {
    const { code, talk } = await (await desk()).cli("approve", ...args);
    expect(code).toBe(2);
    expect(talk).toContain(says);
  });
});

async function approvalOf(run: RunHandle): Promise<string> {
  for await (const event of run.events()) if (event.type === "approval_request") return event.data.approvalId;
  throw new Error("the run asks nothing");
}

describe("reeve fork", () => {
  test("reeve fork stores a run with the message and the model, which a worker of the store executes", async () => {
    const { cli, runtime } = await desk();
    const model = scriptedModel(["Yes.", "No.", "Maybe."]);
    const agent = new Agent({ name: "quick", model });
    const origin = await agent.submit("Really?", { runtime, runId: "run_origin" });
    await origin.result();
    const { code, out } = await cli("fork", "run_or", "--at", "0", "--input", "Be honest.");
    expect(code).toBe(0);
    const fork = await runtime.find(out[0] ?? "");
    expect(await fork?.result()).toMatchObject({ status: "completed", output: "No.", turns: 1 });
    expect(model.calls[1]?.messages).toHaveLength(2);
  });

  test("reeve fork refuses an event that does not exist and an unknown model, and stores nothing", async () => {
    const { cli, runtime } = await desk();
    await new Agent({ name: "quick", model: scriptedModel(["Yes."]) }).invoke("?", {
      runtime,
      runId: "run_a",
    });
    const refusals = [
      [["--at", "99"], "the last event of run_a so far is"],
      [["--at", "x"], "invalid --at x: expected the seq of an event"],
      [["--at", "0", "--model", "nowhere/x"], 'unknown model "nowhere/x"'],
      [["--at", "0", "--input", " "], "invalid input"],
      [["--input", "y"], "--at <seq>"],
    ] as const;
    for (const [options, message] of refusals) {
      const { code, talk } = await cli("fork", "run_a", ...options);
      expect(code).not.toBe(0);
      expect(talk).toContain(message);
    }
    expect((await runtime.list()).runs).toHaveLength(1);
  });
});
