import { describe, expect, it } from "vitest";
import type { Message } from "../../src/kernel/index.ts";
import { openRuntime } from "../../src/runtime/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { agent, settle } from "./bench-runtime.ts";
import { removeStoresAfterEach, twoStores } from "./two-stores.ts";

removeStoresAfterEach();

describe.each(twoStores)("a message sent twice (%s)", (_name, prepare) => {
  it.each([
    ["while its run is kept", {}],
    ["when its run is gone", { keepEndedRunsMs: 1_000 }],
  ])("is delivered once within keepMessageIdsMs, and again after that, %s", async (_when, options) => {
    const store = await (await prepare())();
    const clock = new FakeClock();
    const runtime = await openRuntime({ store, clock, keepMessageIdsMs: 10_000, ...options });
    const heard: string[] = [];
    const listener = agent("listener", async (ctx, inbox) => {
      heard.push(...inbox.messages.map(({ id }) => id), ctx.facts.runId);
    });
    runtime.register(listener);
    const message: Message = { id: "m", from: null, to: listener.id, body: null, sentAt: 0 };
    const send = async (): Promise<boolean> => {
      const isNew = await store.inbox.deliver(message);
      await settle();
      return isNew;
    };
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 1_000) {
        await clock.advance(1_000);
        await settle();
      }
    };
    expect(await send()).toBe(true);
    await pass(9_000);
    expect(await send()).toBe(false);
    expect(heard).toHaveLength(2);
    await pass(20_000);
    expect(await send()).toBe(true);
    expect(heard.filter((each) => each === "m")).toHaveLength(2);
    await pass(30_000);
    expect(await send()).toBe(true);
    expect(heard.filter((each) => each === "m")).toHaveLength(3);
    await runtime.close();
  });
});
