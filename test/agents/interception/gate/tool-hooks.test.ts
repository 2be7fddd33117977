import { expect, test } from "vitest";
import { composeGate, toolHooks } from "../../../../src/entries/index.ts";
import { FakeClock } from "../../../../src/testing/index.ts";
import { text } from "../../../runtime/runtime-setup.ts";
import { after, before } from "./gate-with.ts";
import { factsOf, gatedCall } from "./gated-call.ts";

const { call } = gatedCall();
const facts = factsOf("ada");

test("the first deny of a tool hook wins, in registration order, and a hook can be removed", async () => {
  const hooks = toolHooks({ clock: new FakeClock() });
  const asked: string[] = [];
  hooks.onPreTool(() => void asked.push("silent"));
  const remove = hooks.onPreTool(async () => ({ deny: "first" }));
  hooks.onPreTool(() => ({ deny: "second" }));
  expect(await hooks.preTool(call, facts)).toEqual({ deny: "first" });
  remove();
  expect(await hooks.preTool(call, facts)).toEqual({ deny: "second" });
  expect(asked).toEqual(["silent", "silent"]);
});

test("a tool hook that takes longer than five seconds denies the call, and the timer of a fast hook is cleared", async () => {
  const clock = new FakeClock();
  const hooks = toolHooks({ clock });
  hooks.onPreTool(() => undefined);
  await hooks.preTool(call, facts);
  expect(clock.pending).toBe(0);
  hooks.onPreTool(() => new Promise(() => {}));
  const verdict = before(composeGate({ hooks }), gatedCall());
  await clock.advance(5_000);
  expect(await verdict).toEqual({
    decision: "deny",
    by: "hook",
    reason: "a hook failed: a hook before look took longer than 5000 ms",
  });
});

test("all tool hooks after a call are called; an error or timeout of a hook is recorded and does not change the result", async () => {
  const clock = new FakeClock();
  const hooks = toolHooks({ clock, timeoutMs: 10 });
  const seen: unknown[] = [];
  hooks.onPostTool(() => {
    throw new Error("one");
  });
  hooks.onPostTool(() => new Promise(() => {}));
  hooks.onPostTool((_call, result) => void seen.push(result));
  const gated = gatedCall();
  const reviewed = after(composeGate({ hooks }), gated, text("done"));
  await clock.advance(10);
  expect(await reviewed).toEqual(text("done"));
  expect(seen).toEqual([text("done")]);
  expect(gated.told).toMatchObject([
    { type: "hook_error", data: { hook: "post_tool", failure: { message: "one" } } },
    { type: "hook_error", data: { hook: "post_tool", failure: { code: "tool_timeout" } } },
  ]);
});

test("toolHooks() requires a timeoutMs above 0, or null for no limit", async () => {
  expect(() => toolHooks({ timeoutMs: 0 })).toThrow(
    /expected a finite number above 0, or null for no limit/u,
  );
  const hooks = toolHooks({ timeoutMs: null });
  hooks.onPreTool(() => ({ deny: "no" }));
  expect(await hooks.preTool(call, facts)).toEqual({ deny: "no" });
});
