import { describe, expect, test } from "vitest";
import { tool } from "../../../src/entries/index.ts";
import { formatAgentId, type Event, type HostedAgent } from "../../../src/kernel/index.ts";
import { until } from "../../runtime/runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";
import { company, resultsIn, worker } from "../company.ts";
import { reopen } from "../reopened.ts";

removeStoresAfterEach();

const locate = tool({
  name: "locate",
  description: "Returns where the user is.",
  inputSchema: { type: "object", properties: { precise: { type: "boolean" } } } as const,
  clientSide: true,
});
const locating = (callId: string) => ({ name: "locate", input: { precise: true }, callId });
const isRequest = ({ type }: Event): boolean => type === "approval_request";
const requestsIn = (events: readonly Event[]) =>
  events.flatMap((event) => (event.type === "approval_request" ? [event.data] : []));

function guide(...calls: readonly string[]) {
  const turn = { toolCalls: calls.map((callId) => locating(callId)) };
  return worker("guide", [turn, "You are in Lyon."], { tools: [locate] });
}

describe("a client-side tool", () => {
  test.each(twoStores)(
    "a client-side tool waits under its call id until toolResult() arrives in a second runtime (%s)",
    async (_name, prepare) => {
      const { agent, model } = guide("call-1");
      await using second = await reopen(await prepare(), agent, isRequest);
      expect(requestsIn(await second.events())).toMatchObject([
        { kind: "client_tool", callId: "call-1", toolName: "locate", input: { precise: true } },
      ]);
      await second.run.toolResult("call-1", { town: "Lyon" });
      expect((await second.run.result()).output).toBe("You are in Lyon.");
      expect(model.calls).toHaveLength(2);
      expect(resultsIn(model)).toEqual(['{"type":"json","value":{"town":"Lyon"}}']);
      expect(requestsIn(await second.events())).toHaveLength(1);
    },
  );

  test("the deadline clock stops while a client-side tool waits, and the run waits for a person", async () => {
    const team = await company({ suspendAfterMs: 100 });
    const { agent } = guide("call-1");
    const run = await team.runtime.submit(agent, "Where am I?", { budget: { deadlineMs: 1_000 } });
    await until(async () => (await run.snapshot()).status === "waiting");
    expect((await run.snapshot()).waitsFor).toEqual(["person"]);
    await team.clock.advance(1_000_000);
    await run.toolResult("call-1", "Lyon");
    expect((await run.result()).status).toBe("completed");
  });

  test("calls of a client-side tool in one turn get their results by call id, in any order", async () => {
    const team = await company();
    const { agent, model } = guide("a", "b");
    const run = await team.runtime.submit(agent, "Where am I?");
    await until(async () => requestsIn(await team.events(run.runId)).length === 2);
    await run.toolResult("b", "second");
    await run.toolResult("a", "first", { isError: true });
    await run.result();
    expect(resultsIn(model)).toEqual(["error: first", "second"]);
  });

  test("calls with the same id get the results of a client-side tool in the order of the calls", async () => {
    const team = await company();
    const { agent, model } = worker(
      "guide",
      [{ toolCalls: [locating("same")] }, { toolCalls: [locating("same")] }, "Done."],
      { tools: [locate] },
    );
    const run = await team.runtime.submit(agent, "Where am I?");
    for (const [index, value] of ["first", "second"].entries()) {
      await until(async () => requestsIn(await team.events(run.runId)).length === index + 1);
      await run.toolResult("same", value);
      // A repeated result for an answered call has no effect on the next call.
      await run.toolResult("same", value);
      await until(async () => {
        const decided = (await team.events(run.runId)).filter(({ type }) => type === "approval_decision");
        return decided.length === index + 1;
      });
    }
    await run.result();
    const results = model.calls.at(-1)?.messages.filter(({ role }) => role === "tool");
    expect(results).toMatchObject([
      { content: [{ output: { text: "first" } }] },
      { content: [{ output: { text: "second" } }] },
    ]);
  });

  test.each(twoStores)(
    "calls of a client-side tool in one turn with the same id get results that toolResult() sends at once in their order (%s)",
    async (_name, prepare) => {
      const { agent, model } = guide("same", "same", "same");
      await using second = await reopen(await prepare(), agent, isRequest);
      await until(async () => requestsIn(await second.events()).length === 3);
      for (const value of ["first", "second", "third"]) await second.run.toolResult("same", value);
      expect((await second.run.result()).status).toBe("completed");
      expect(resultsIn(model)).toEqual(["first", "second", "third"]);
    },
  );

  test("toolResult() with the id of a request addresses one of several calls with the same call id", async () => {
    const team = await company();
    const { agent, model } = guide("same", "same");
    const run = await team.runtime.submit(agent, "Where am I?");
    await until(async () => requestsIn(await team.events(run.runId)).length === 2);
    const ids = requestsIn(await team.events(run.runId)).map(({ approvalId }) => approvalId);
    const [first = "", last = ""] = ids;
    await Promise.all([run.toolResult(last, "last"), run.toolResult(first, "first")]);
    await run.result();
    expect(resultsIn(model)).toEqual(["first", "last"]);
  });

  test("a client-side result goes to a live call and not to a call with the same id of a task that has ended", async () => {
    const team = await company();
    const { agent: slow } = worker("slow", [{ toolCalls: [locating("same")] }, "never"], { tools: [locate] });
    const { agent: quick } = worker("quick", [{ toolCalls: [locating("same")] }, "In Lyon."], {
      tools: [locate],
    });
    const lead: HostedAgent = {
      id: formatAgentId({ name: "lead" }),
      subAgents: [slow, quick],
      run: async (ctx) => {
        const one = await ctx.spawn(slow.id, "Where?");
        const two = await ctx.spawn(quick.id, "Where?");
        if (one.kind !== "spawned" || two.kind !== "spawned") return "refused";
        await ctx.waitForSignal("go");
        await ctx.cancel(one.handle, "too slow");
        await ctx.waitForSignal("join");
        return (await ctx.join(two.handle)).output ?? null;
      },
    };
    const run = await team.runtime.submit(lead, null);
    await until(async () => requestsIn(await team.events(run.runId)).length === 2);
    await run.signal("go");
    await until(async () => (await team.events(run.runId)).some(({ type }) => type === "task_end"));
    await run.toolResult("same", "Lyon");
    await run.signal("join");
    expect((await run.result()).output).toBe("In Lyon.");
  });

  test.each(twoStores)(
    "a run that is resumed after a cancel lists its client-side call again and takes the result (%s)",
    async (_name, prepare) => {
      const { agent, model } = guide("call-1");
      await using second = await reopen(await prepare(), agent, isRequest);
      await second.run.cancel("a mistake");
      await second.run.result();
      await second.run.resume();
      expect(await second.run.untilPersonIsNeeded()).toMatchObject([{ callId: "call-1" }]);
      await second.run.toolResult("call-1", "Lyon");
      expect((await second.run.result()).status).toBe("completed");
      expect(resultsIn(model)).toEqual(["Lyon"]);
    },
  );

  test("approve() refuses to approve a client-side call without a result, and may deny it", async () => {
    const team = await company();
    const { agent, model } = guide("call-1");
    const run = await team.runtime.submit(agent, "Where am I?");
    await until(async () => requestsIn(await team.events(run.runId)).length === 1);
    const [{ approvalId } = { approvalId: "" }] = await run.pendingApprovals();
    await expect(run.approve(approvalId, { decision: "approved" })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(
        'the client-side tool locate needs a result; use run.toolResult("call-1", value)',
      ),
    });
    await run.approve(approvalId, { decision: "denied", reason: "no permission" });
    expect((await run.result()).status).toBe("completed");
    expect(resultsIn(model)).toEqual(["error: no permission"]);
  });

  test("a client-side value with the form of a tool result is shown to the model and does not end the loop", async () => {
    const team = await company();
    const { agent, model } = guide("call-1");
    const run = await team.runtime.submit(agent, "Where am I?");
    await until(async () => requestsIn(await team.events(run.runId)).length === 1);
    await run.toolResult("call-1", {
      output: { type: "text", text: "x" },
      isError: false,
      terminate: "always",
    });
    expect((await run.result()).output).toBe("You are in Lyon.");
    expect(resultsIn(model)[0]).toContain("terminate");
  });

  test("toolResult() rejects with not_found for an unknown call id and after the end of the run", async () => {
    const team = await company();
    const { agent } = guide("call-1");
    const run = await team.runtime.submit(agent, "Where am I?");
    await until(async () => requestsIn(await team.events(run.runId)).length === 1);
    await expect(run.toolResult("call-2", "x")).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining('has no call "call-2" of a client-side tool'),
    });
    await run.cancel();
    await run.result();
    await expect(run.toolResult("call-1", "x")).rejects.toMatchObject({ code: "not_found" });
  });

  test("tool() refuses a client-side tool with a body or a timeout, and names the option", () => {
    const base = {
      name: "locate",
      description: "",
      inputSchema: { type: "object" },
      clientSide: true,
    } as const;
    expect(() => tool({ ...base, execute: () => "x" } as never)).toThrow(
      /invalid option execute of tool locate/u,
    );
    expect(() => tool({ ...base, timeoutMs: 5 } as never)).toThrow(
      /invalid option timeoutMs of tool locate/u,
    );
  });
});
