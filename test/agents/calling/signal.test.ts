import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool, type RunResult } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { gate } from "../../runtime/runtime-setup.ts";
import { scout } from "../scout.ts";

const calls = { toolCalls: [{ name: "wait", input: {} }] };

/** An agent whose tool waits until it is cancelled. `started` resolves when the tool runs. */
function waiter() {
  const started = gate();
  const wait = tool({
    name: "wait",
    description: "Waits.",
    inputSchema: { type: "object", properties: {} } as const,
    execute: (_, { signal }) =>
      new Promise<string>((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(new Error("stopped")));
        started.resolve();
      }),
  });
  const model = scriptedModel([calls, "Never said."]);
  return { agent: new Agent({ name: "waiter", model, tools: [wait] }), model, started: started.promise };
}

/** An `AbortController` whose signal counts its listeners. */
function counted() {
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--;
    remove(...args);
  };
  return { controller, signal, listeners: () => listeners };
}

describe("the abort signal of a call", () => {
  test("invoke() cancels the run with the reason of the signal when it aborts", async () => {
    const { agent, model, started } = waiter();
    const controller = new AbortController();
    const running = agent.invoke("Wait.", { signal: controller.signal });
    await started;
    controller.abort(new Error("the caller left"));
    expect(await running).toMatchObject({ status: "cancelled", interruptionReason: "the caller left" });
    expect(model.calls).toHaveLength(1);
  });

  test("invoke() cancels a run whose signal aborts while the run is created", async () => {
    const { agent, model } = waiter();
    const controller = new AbortController();
    const running = agent.invoke("Wait.", { signal: controller.signal });
    controller.abort("too late");
    const { status, interruptionReason } = await running;
    expect([status, interruptionReason]).toEqual(["cancelled", "too late"]);
    expect(model.calls.length).toBeLessThan(2);
  });

  test.each(["invoke", "stream"] as const)(
    "%s() creates no run and fails with cancelled if the signal is aborted before the call",
    async (method) => {
      const runtime = await openRuntime({ store: "memory:" });
      const { agent, model } = scout(["Said."]);
      const options = { runtime, signal: AbortSignal.abort("stopped") };
      const result: () => Promise<RunResult> =
        method === "invoke"
          ? () => agent.invoke("Look.", options)
          : () => agent.stream("Look.", options).result();
      await expect(result()).rejects.toMatchObject({
        code: "cancelled",
        message: "no run was started, because the signal is aborted: stopped",
      });
      expect((await runtime.list()).runs).toEqual([]);
      expect(model.calls).toEqual([]);
      await runtime.close();
    },
  );

  test("stream() cancels the run when its signal aborts, also after the reader has left the loop", async () => {
    const { agent, started } = waiter();
    const controller = new AbortController();
    const stream = agent.stream("Wait.", { signal: controller.signal });
    for await (const event of stream) if (event.type === "run_start") break;
    await started;
    controller.abort();
    const run = await stream.run();
    expect(await run.result()).toMatchObject({
      status: "cancelled",
      interruptionReason: "This operation was aborted",
    });
  });

  test("an abort signal that serves many runs has no listener after each of them has ended", async () => {
    const { signal, listeners } = counted();
    const { agent } = scout(["one", "two", "three"]);
    await agent.invoke("A", { signal });
    expect(listeners()).toBe(0);
    await agent.stream("B", { signal }).result();
    expect(listeners()).toBe(0);
    const types: string[] = [];
    for await (const event of agent.stream("C", { signal })) types.push(event.type);
    expect(types).toContain("run_end");
    expect(listeners()).toBe(0);
  });

  test("runUntil() ends as cancelled if its signal aborts between two iterations", async () => {
    const controller = new AbortController();
    const { agent, model } = scout(["one", "two"]);
    const until = (): boolean => {
      controller.abort();
      return false;
    };
    const result = await agent.runUntil("Go.", { until, signal: controller.signal });
    expect(result).toMatchObject({ status: "cancelled", output: "one" });
    expect(model.calls).toHaveLength(1);
  });

  test("invoke() rejects if the run cannot be cancelled, because its runtime was closed", async () => {
    const runtime = await openRuntime({ store: "memory:", closeGraceMs: 0 });
    const { agent, started } = waiter();
    const controller = new AbortController();
    const running = agent.invoke("Wait.", { runtime, signal: controller.signal });
    running.catch(() => undefined);
    await started;
    await runtime.close();
    controller.abort();
    await expect(running).rejects.toMatchObject({ code: "closed" });
  });

  test("invoke() refuses a value that is no signal, and submit() refuses a signal", async () => {
    const { agent } = scout([]);
    await expect(agent.invoke("Look.", { signal: new AbortController() as never })).rejects.toMatchObject({
      code: "invalid_argument",
      message:
        "invalid signal of a run of agent scout: it has no method addEventListener; use the signal of an AbortController",
    });
    const submitted = agent.submit("Look.", { signal: new AbortController().signal } as never);
    await expect(submitted).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("use cancel() of the run handle"),
    });
  });
});
