import { describe, expect, it } from "vitest";
import { Fault, type RunId, type Runtime } from "../../../src/kernel/index.ts";
import { agent, settle, setUp, type Bench } from "../runtime-setup.ts";

const clerk = agent("clerk", async () => "filed");
const waiting = agent("waiting", (ctx) => ctx.waitForSignal("go"));

/** A store with a run of `clerk` that no process executes, and a runtime in which `clerk` is not registered. */
async function abandonedRun(
  versionPolicy: "resume" | "pin" = "resume",
): Promise<Bench & { readonly other: Runtime; readonly runId: RunId }> {
  const bench = await setUp();
  const hanging = agent("clerk", () => new Promise<never>(() => undefined), { version: "2" });
  const { runId } = await bench.runtime.submit(hanging, "file this");
  await settle();
  // The process that executed the run has gone.
  await bench.runtime.close();
  return { ...bench, other: await bench.open({ versionPolicy }), runId };
}

const faultsIn = (errors: readonly unknown[]): string[] =>
  errors.map((error) => (Fault.is(error) ? `${error.code}: ${error.message}` : String(error)));

describe("a caller that awaits a run whose agent is not registered", () => {
  it.each(["result", "events"] as const)(
    "%s() reports once that no process hosts the agent of a run, and resolves after register()",
    async (wait) => {
      const { clock, errors, other, runId } = await abandonedRun();
      const run = await other.find(runId);
      if (run === undefined) throw new Error("the run is not in the store");
      const read = async (): Promise<unknown> => {
        for await (const event of run.events()) if (event.type === "run_end") return event.data.status;
        return undefined;
      };
      const awaited = wait === "result" ? run.result().then(({ status }) => status) : read();
      await clock.advance(4_000);
      expect(errors).toEqual([]);
      await clock.advance(20_000);
      expect(faultsIn(errors)).toEqual([
        `not_found: run ${runId} waits for a worker: agent clerk (version 2) is not registered in this process, and no other process executes the run; call runtime.register() with the agent, or start a process that hosts it`,
      ]);
      other.register(clerk);
      await settle();
      expect(await awaited).toBe("completed");
    },
  );

  it("result() reports a run that is pinned to a version of the agent that no process hosts", async () => {
    const { clock, errors, other, runId } = await abandonedRun("pin");
    other.register({ ...clerk, version: "1" });
    void (await other.find(runId))?.result();
    await clock.advance(6_000);
    expect(faultsIn(errors).join()).toContain("agent clerk (version 2) is not registered");
  });

  it("result() reports the machine to which a run is bound while no worker there executes it", async () => {
    const { open, clock, errors } = await setUp();
    const bound = agent("bound", async (ctx) => {
      ctx.stayOnHost("files");
      await ctx.waitForSignal("go");
      return "done";
    });
    const there = await open({ host: "build-1", suspendAfterMs: 0 });
    const { runId } = await there.submit(bound, null);
    await settle();
    await there.close();
    const here = await open({ host: "build-2" });
    here.register(bound);
    const run = await here.find(runId);
    const result = run?.result();
    await clock.advance(20_000);
    expect(errors).toEqual([]);
    await run?.signal("go");
    await clock.advance(6_000);
    expect(faultsIn(errors)).toEqual([
      `not_found: run ${runId} waits for the machine build-1: it has left files there, and no worker of that machine executes it; start a process there that hosts its agent, or cancel the run`,
    ]);
    const back = await open({ host: "build-1" });
    back.register(bound);
    await clock.advance(1_000);
    expect((await result)?.output).toBe("done");
  });

  it("result() reports nothing while another process executes the run or the run waits", async () => {
    const { runtime, open, clock, errors } = await setUp({ suspendAfterMs: 100 });
    const { runId } = await runtime.submit(waiting, null);
    const other = await open();
    const result = (await other.find(runId))?.result();
    await clock.advance(60_000);
    expect(errors).toEqual([]);
    await (await other.find(runId))?.signal("go", "done");
    await clock.advance(1_000);
    expect((await result)?.output).toBe("done");
    expect(errors).toEqual([]);
  });

  it("result() reports an ended run if no process executes its resume", async () => {
    const { runtime, open, clock, errors, store } = await setUp({ runRetry: { maxRetries: 0 } });
    const broken = agent("broken", () => Promise.reject(new Error("broken")));
    const { runId } = await runtime.submit(broken, null);
    await settle();
    await runtime.close();
    const other = await open({ store });
    const run = await other.find(runId);
    await run?.resume();
    void run?.result();
    await clock.advance(6_000);
    expect(faultsIn(errors).join()).toContain("agent broken is not registered in this process");
  });

  it("a caller that stops waiting for a run without a host receives no further report", async () => {
    const { clock, errors, other, runId } = await abandonedRun();
    const run = await other.find(runId);
    for await (const event of run?.events() ?? []) if (event.type === "run_start") break;
    await clock.advance(60_000);
    expect(errors).toEqual([]);
  });
});
