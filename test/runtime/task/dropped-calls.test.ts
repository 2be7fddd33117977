import { describe, expect, it } from "vitest";
import { Transcript, userMessage, type CancelSignal, type Model } from "../../../src/kernel/index.ts";
import { agent, gate, setUp, settle, simpleTool, text } from "../runtime-setup.ts";
import { findRun } from "../find-run.ts";

/** Does nothing until its signal aborts, like an open socket. */
function hang(signal: CancelSignal | undefined, told: string[], name: string): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener("abort", () => {
      told.push(name);
      reject(new Error(`${name} was stopped`));
    });
  });
}

function hangingModel(told: string[]): Model {
  return {
    provider: "slow",
    modelId: "slow",
    stream: () => {
      throw new Error("not streamed");
    },
    generate: (_request, options) => hang(options?.signal, told, "model"),
  };
}

describe("calls in flight when a task is dropped", () => {
  const worker = (told: string[], after: string[]) => {
    const socket = simpleTool({
      name: "socket",
      execute: (_input, { signal }) => hang(signal, told, "tool"),
    });
    return agent(
      "worker",
      async (ctx) => {
        ctx.meta.cancellation.onCancel(() => after.push("cancelled"));
        try {
          await ctx.parallel({
            model: (branch) => branch.llm({ transcript: Transcript.of([userMessage("hi")]) }),
            tool: (branch) => branch.tool({ callId: "1", toolName: "socket", input: {} }),
            step: (branch) => branch.step("process", ({ signal }) => hang(signal, told, "step")),
          });
          after.push("went on");
        } catch {
          after.push("caught");
        } finally {
          after.push("finally");
        }
      },
      { models: { main: hangingModel(told) }, tools: [socket] },
    );
  };

  it("a call in flight receives an abort signal when another owner has taken the run, and its task executes no more code", async () => {
    const { runtime, store, events, errors } = await setUp();
    const [told, after]: string[][] = [[], []];
    const run = await runtime.submit(worker(told ?? [], after ?? []), null);
    await settle();
    expect(told).toEqual([]);
    await store.leases.seize(run.runId, "another");
    await settle();
    expect(told?.toSorted()).toEqual(["model", "step", "tool"]);
    expect(after).toEqual([]);
    expect(errors).toMatchObject([{ code: "lease_lost" }]);
    const types = (await events(run.runId)).map(({ type }) => type);
    expect(types).not.toContain("message_end");
    expect(types).not.toContain("tool_execution_end");
  });

  it("a call in flight receives an abort signal after the grace period when the runtime closes, and the next owner repeats it", async () => {
    const { runtime, store, open, clock } = await setUp({ closeGraceMs: 1_000 });
    const [told, after]: string[][] = [[], []];
    let run = await runtime.submit(worker(told ?? [], after ?? []), null);
    await settle();
    const closing = runtime.close();
    await clock.advance(999);
    expect(told).toEqual([]);
    await clock.advance(20);
    await closing;
    expect(told?.toSorted()).toEqual(["model", "step", "tool"]);
    expect(after).toEqual([]);
    await store.leases.dismiss("worker-1");
    const next = await open();
    const once = simpleTool({ name: "socket", execute: async () => text("open") });
    next.register(
      agent(
        "worker",
        async (ctx) => {
          const { tool } = await ctx.parallel({
            model: async () => null,
            tool: (branch) => branch.tool({ callId: "1", toolName: "socket", input: {} }),
          });
          return tool.isError;
        },
        { tools: [once] },
      ),
    );
    run = await findRun(next, run);
    await clock.advance(1_000);
    expect((await run.result()).output).toBe(false);
  });

  it("a call in flight that settles within the grace period when the runtime closes is recorded and not repeated", async () => {
    const { runtime, store, open, clock } = await setUp({ closeGraceMs: 1_000 });
    const answer = gate();
    const done: string[] = [];
    const slow = () =>
      agent("slow", async (ctx) => {
        const one = await ctx.step("one", async ({ signal }) => {
          await answer.promise;
          done.push(signal.aborted ? "aborted" : "one");
          return 1;
        });
        return ctx.step("two", async () => (done.push("two"), one + 1));
      });
    let run = await runtime.submit(slow(), null);
    await settle();
    const closing = runtime.close();
    await clock.advance(500);
    answer.resolve();
    await settle();
    await clock.advance(100);
    await closing;
    expect(done).toEqual(["one"]);
    await store.leases.dismiss("worker-1");
    const next = await open();
    next.register(slow());
    run = await findRun(next, run);
    await clock.advance(1_000);
    expect((await run.result()).output).toBe(2);
    expect(done).toEqual(["one", "two"]);
  });

  it("a call in flight receives no abort signal when its task has ended by itself", async () => {
    const { runtime } = await setUp();
    const signals: CancelSignal[] = [];
    const run = await runtime.submit(
      agent("quick", async (ctx) => {
        signals.push(ctx.signal);
        return ctx.step("one", async () => 1);
      }),
      null,
    );
    await run.result();
    await settle();
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  });
});
