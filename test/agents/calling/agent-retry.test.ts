import { describe, expect, test } from "vitest";
import { Agent, openRuntime, type Event } from "../../../src/entries/index.ts";
import { type RetryChanges } from "../../../src/kernel/index.ts";
import type { HostedAgent, RunHandle, RunResult } from "../../../src/kernel/index.ts";
import { FakeClock, scriptedModel } from "../../../src/testing/index.ts";
import { settle } from "../../runtime/runtime-setup.ts";

const overloaded = (): Error => Object.assign(new Error("busy"), { status: 503 });
const fails = (times: number) => Array.from({ length: times }, () => ({ error: overloaded() }));

async function eventsOf(run: RunHandle): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of run.events()) if ("seq" in event) events.push(event);
  return events;
}

/** Runs an agent whose model fails four times and then answers, and returns the delays of its retries. */
async function retried(of: { readonly agent?: RetryChanges; readonly runtime?: RetryChanges }) {
  const clock = new FakeClock();
  const runtime = await openRuntime({ clock, ...(of.runtime !== undefined && { retry: of.runtime }) });
  const model = scriptedModel([...fails(4), "done"]);
  const agent = new Agent({ name: "scout", model, ...(of.agent !== undefined && { retry: of.agent }) });
  const run = await agent.submit("Go", { runtime });
  const wait = async (): Promise<undefined> => {
    await settle();
    await clock.advance(10_000);
  };
  let result: RunResult | undefined;
  while (result === undefined) result = await Promise.race([run.result(), wait()]);
  const { status, error } = result;
  const events = await eventsOf(run);
  await runtime.close();
  const delays = events.flatMap((each) => (each.type === "retry_start" ? [each.data.delayMs] : []));
  const ends = events.flatMap((each) => (each.type === "retry_end" ? [each.data.success] : []));
  return { status, code: error?.code, delays, ends, calls: model.calls.length };
}

describe("retry of an agent", () => {
  test("an agent without retry uses the default of the runtime: 3 retries after 2, 4 and 8 seconds", async () => {
    const { status, code, delays, ends, calls } = await retried({});
    expect({ status, code, calls }).toEqual({ status: "failed", code: "model_overloaded", calls: 4 });
    expect(delays).toEqual([2_000, 4_000, 8_000]);
    expect(ends).toEqual([false, false, false]);
  });

  test("O3: the delay of an agent's retries starts at its base and doubles with each retry", async () => {
    const { status, delays, ends } = await retried({ agent: { maxRetries: 4, baseDelayMs: 100 } });
    expect(status).toBe("completed");
    expect(delays).toEqual([100, 200, 400, 800]);
    expect(ends).toEqual([false, false, false, true]);
  });

  test("the retry settings of an agent take precedence over those of the runtime, one by one", async () => {
    const runtime = { maxRetries: 1, baseDelayMs: 500, maxDelayMs: 1_500 };
    const { status, delays } = await retried({ agent: { maxRetries: 4 }, runtime });
    expect(status).toBe("completed");
    expect(delays).toEqual([500, 1_000, 1_500, 1_500]);
  });

  test.each([
    ["the agent", { agent: false }],
    ["the agent, with settings of the runtime", { agent: false, runtime: { maxRetries: 9 } }],
    ["the runtime", { runtime: false }],
  ] as const)("retry: false of %s fails the run after one attempt", async (_owner, options) => {
    const { status, delays, calls } = await retried(options);
    expect({ status, delays, calls }).toEqual({ status: "failed", delays: [], calls: 1 });
  });

  test("an agent may switch retries on although its runtime has switched them off", async () => {
    const { status, calls } = await retried({ agent: { enabled: true, maxRetries: 4 }, runtime: false });
    expect({ status, calls }).toEqual({ status: "completed", calls: 5 });
  });

  test("a sub-agent has its own retry settings", async () => {
    const clock = new FakeClock();
    await using runtime = await openRuntime({ clock });
    const worker = new Agent({ name: "worker", model: scriptedModel(fails(1)), retry: false });
    const asks = { toolCalls: [{ name: "worker", input: { task: "Look" } }] };
    const model = scriptedModel([{ error: overloaded() }, asks, "sorry"]);
    const tools = [worker.asTool({ description: "Looks" })];
    const lead = new Agent({ name: "lead", model, tools, retry: { baseDelayMs: 10 } });
    const run = await lead.submit("Go", { runtime });
    await settle();
    await clock.advance(10);
    expect((await run.result()).output).toBe("sorry");
    const retries = (await eventsOf(run)).filter(({ type }) => type === "retry_start");
    expect(retries.map(({ agentId }) => agentId)).toEqual([lead.id]);
  });

  test.each([
    [{ maxRetries: -1 }, "invalid maxRetries -1 of retry of agent scout: expected an integer from 0"],
    [{ maxRetries: Number.NaN }, "invalid maxRetries NaN of retry of agent scout"],
    [{ maxRetries: 1.5 }, "invalid maxRetries 1.5 of retry of agent scout"],
    [
      { baseDelayMs: Number.NaN },
      "invalid baseDelayMs NaN of retry of agent scout: expected a number from 0",
    ],
    [{ baseDelayMs: "5" }, 'invalid baseDelayMs "5" of retry of agent scout'],
    [{ maxDelayMs: null }, "invalid maxDelayMs null of retry of agent scout"],
    [{ jitter: Number.POSITIVE_INFINITY }, "invalid jitter Infinity of retry of agent scout"],
    [{ enabled: "no" }, 'invalid enabled "no" of retry of agent scout: expected true or false'],
    [{ retries: 3 }, 'unknown option "retries" of retry of agent scout: use "maxRetries"'],
    [{ baseDelay: 3 }, 'unknown option "baseDelay" of retry of agent scout: use "baseDelayMs"'],
    [true, "invalid options of retry of agent scout"],
    [3, "invalid options of retry of agent scout"],
  ])("an agent is refused if its option retry is %j", (retry, message) => {
    const options = { name: "scout", model: scriptedModel([]), retry: retry as never };
    expect(() => new Agent(options)).toThrow(message);
  });

  test("maxRetries of an agent is refused and names the option retry", () => {
    const options = { name: "scout", model: scriptedModel([]), maxRetries: 3 };
    expect(() => new Agent(options as never)).toThrow("use `retry: { maxRetries }` of the agent");
  });

  test("register() refuses a custom agent whose retry settings or timeouts are invalid", async () => {
    await using runtime = await openRuntime();
    const custom = { id: "agent:custom" as HostedAgent["id"], run: async () => null };
    const endless = { ...custom, retry: { maxRetries: Number.NaN } };
    expect(() => runtime.register(endless)).toThrow("invalid maxRetries NaN of retry of agent agent:custom");
    const late = { ...custom, modelTimeouts: { totalMs: -1 } };
    expect(() => runtime.register(late)).toThrow("invalid totalMs -1 of modelTimeouts of agent agent:custom");
  });
});
