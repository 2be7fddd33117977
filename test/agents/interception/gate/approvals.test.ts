import { describe, expect, test } from "vitest";
import {
  Agent,
  composeGate,
  permissions,
  tool,
  toolHooks,
  type AgentOptions,
  inMemoryApprovals,
} from "../../../../src/entries/index.ts";
import { type PermissionsOptions } from "../../../../src/agents/interception/permissions/permissions.ts";
import {
  formatAgentId,
  type HostedAgent,
  type ApprovalDecision,
  type JsonValue,
} from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { openPlace, places, toldOf, untilTold } from "./place.ts";

interface Sender {
  readonly agent: Agent;
  readonly model: ScriptedModel;
  readonly sent: JsonValue[];
}

const send = (to: string): ScriptStep => ({ toolCalls: [{ name: "send", input: { to } }] });
const reads: ScriptStep = ({ messages }) => {
  const last = messages.at(-1);
  const [part] = last?.role === "tool" ? last.content : [];
  return part?.output.type === "text" ? part.output.text : "nothing";
};

function sender(
  rules: PermissionsOptions,
  script: readonly ScriptStep[] = [send("ada"), reads],
  more: Partial<AgentOptions> = {},
): Sender {
  const sent: JsonValue[] = [];
  const model = scriptedModel(script);
  const letters = tool({
    name: "send",
    description: "Sends a letter",
    inputSchema: { type: "object", properties: { to: { type: "string" } }, required: ["to"] } as const,
    risk: "critical",
    execute: (input) => {
      sent.push({ ...input });
      return `sent to ${input.to}`;
    },
  });
  const agent = new Agent({
    name: "sender",
    model,
    tools: [letters],
    permissions: permissions(rules),
    ...more,
  });
  return { agent, model, sent };
}

describe.each(places)("an approval with the %s store", (name) => {
  test.for([
    { decision: { decision: "approved" }, output: "sent to ada", sent: [{ to: "ada" }] },
    {
      decision: { decision: "approved", input: { to: "bob" } },
      output: "sent to bob",
      sent: [{ to: "bob" }],
    },
    { decision: { decision: "denied", reason: "too late" }, output: "[denied: too late]", sent: [] },
    { decision: { decision: "skipped" }, output: "[skipped by a person]", sent: [] },
  ] satisfies { decision: ApprovalDecision; output: string | RegExp; sent: JsonValue[] }[])(
    "an approval request survives a restart, and the decision applies: $decision",
    async ({ decision, output, sent }) => {
      const place = await openPlace(name);
      const first = sender({ onAsk: "wait" });
      const run = await (await place.restart()).submit(first.agent, "Write to Ada.");
      const { data: asked } = await untilTold(run, "approval_request");
      // The second process has a model with only the remaining answer.
      const second = sender({ onAsk: "wait" }, [reads]);
      await place.restart(second.agent);
      const found = await place.find(run.runId);
      await found.approve(asked.approvalId, decision);
      const result = await found.result();
      expect(result.status).toBe("completed");
      expect(result.output).toMatch(output);
      expect([first.sent, second.sent]).toEqual([[], sent]);
      expect([first.model.calls.length, second.model.calls.length]).toEqual([1, 1]);
      // The approval id is the same on replay, and the request is recorded once.
      expect((await toldOf(found, "approval_request")).map(({ data }) => data)).toEqual([asked]);
      expect(await toldOf(found, "approval_decision")).toMatchObject([
        { data: { approvalId: asked.approvalId, decision } },
      ]);
    },
  );

  test("an approval is bound to the call's arguments: a decision for other arguments is not_found and has no effect", async () => {
    const place = await openPlace(name);
    const { agent, sent } = sender({ onAsk: "wait" });
    const runtime = await place.restart();
    const eve = sender({ onAsk: "wait" }, [send("eve"), reads], { name: "other" });
    const other = await runtime.submit(eve.agent, "Write to Eve.");
    const stale = (await untilTold(other, "approval_request")).data;
    await other.cancel("only asked");
    await other.result();
    const run = await runtime.submit(agent, "Write to Ada.");
    const { data: asked } = await untilTold(run, "approval_request");
    expect(asked.inputDigest).not.toBe(stale.inputDigest);
    expect(asked.approvalId).not.toBe(stale.approvalId);
    await expect(run.approve(stale.approvalId, { decision: "approved" })).rejects.toMatchObject({
      code: "not_found",
    });
    await run.approve(asked.approvalId, { decision: "denied", reason: "not to her" });
    expect((await run.result()).output).toBe("[denied: not to her]");
    expect(sent).toEqual([]);
  });

  test("edited arguments that do not match the schema are refused before the approval, and the question stays open", async () => {
    const place = await openPlace(name);
    const { agent, sent } = sender({ onAsk: "wait" });
    const run = await (await place.restart()).submit(agent, "Write to Ada.");
    const { data } = await untilTold(run, "approval_request");
    expect(data.inputSchema).toMatchObject({ required: ["to"] });
    await expect(
      run.approve(data.approvalId, { decision: "approved", input: { two: 2 } }),
    ).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(
        /the edited arguments do not match the schema of send: .*to.*still open/u,
      ),
    });
    expect(await run.pendingApprovals()).toMatchObject([{ approvalId: data.approvalId }]);
    await run.approve(data.approvalId, { decision: "approved", input: { to: "bob" } });
    expect((await run.result()).output).toBe("sent to bob");
    expect(sent).toEqual([{ to: "bob" }]);
  });

  test("arguments that a person edited are checked again, so that a deny rule still applies", async () => {
    const place = await openPlace(name);
    const { agent, sent } = sender({
      onAsk: "wait",
      deny: [
        { tool: "send", when: (input) => JSON.stringify(input).includes("eve"), reason: "never to eve" },
      ],
    });
    const run = await (await place.restart()).submit(agent, "Write to Ada.");
    const { data } = await untilTold(run, "approval_request");
    await run.approve(data.approvalId, { decision: "approved", input: { to: "eve" } });
    expect((await run.result()).output).toBe("[denied: never to eve]");
    expect(sent).toEqual([]);
    expect(await toldOf(run, "permission_deny")).toMatchObject([{ data: { by: "permissions" } }]);
  });

  test("a remembered approval applies to the same user and tenant only", async () => {
    const place = await openPlace(name);
    const memory = inMemoryApprovals();
    const asked: (string | null)[] = [];
    const rules: PermissionsOptions = {
      memory,
      onAsk: (_request, { userId }) => {
        asked.push(userId);
        return { decision: "approved", remember: true };
      },
    };
    const runtime = await place.restart();
    const round = [send("ada"), reads];
    const users: readonly { readonly userId?: string; readonly tenantId?: string }[] = [
      { userId: "ada" },
      { userId: "bob" },
      {},
      { userId: "ada", tenantId: "acme" },
      { userId: "ada", tenantId: "other" },
    ];
    const { agent } = sender(rules, Array.from({ length: 2 * users.length }, () => round).flat());
    for (const user of [...users, ...users]) {
      const run = await runtime.submit(agent, "Write.", user);
      expect((await run.result()).output).toBe("sent to ada");
    }
    expect(asked).toEqual(["ada", "bob", null, "ada", "ada"]);
  });

  test("an approval that is remembered after a restart removes only the rule about which the person was asked", async () => {
    const place = await openPlace(name);
    const memory = inMemoryApprovals();
    const to = (word: string) => (input: unknown) => JSON.stringify(input).includes(word);
    const rules: PermissionsOptions = {
      memory,
      onAsk: "wait",
      ask: [
        { tool: "send", when: to("ada"), reason: "Ada is a customer" },
        { tool: "send", when: to("bob"), reason: "Bob is the press" },
      ],
    };
    const run = await (await place.restart()).submit(sender(rules, [send("ada")]).agent, "Write.");
    const asked = await untilTold(run, "approval_request");
    await place.restart(sender(rules, [send("ada"), send("bob"), reads]).agent);
    const found = await place.find(run.runId);
    await found.approve(asked.data.approvalId, { decision: "approved", remember: true });
    const second = await untilTold(found, "approval_request", asked.seq + 1);
    expect(second.data).toMatchObject({ input: { to: "bob" }, reason: "Bob is the press" });
    await found.approve(second.data.approvalId, { decision: "approved" });
    expect((await found.result()).output).toBe("sent to bob");
  });

  test("a hook that returns nothing approves nothing: the approval handler is still asked", async () => {
    const place = await openPlace(name);
    const hooks = toolHooks();
    const seen: string[] = [];
    hooks.onPreTool(() => void seen.push("before"));
    hooks.onPostTool((_call, { isError }) => void seen.push(`after, ${isError ? "failed" : "done"}`));
    const onAsk = (): ApprovalDecision => {
      seen.push("asked");
      return { decision: "approved" };
    };
    const { agent, sent } = sender({ onAsk }, undefined, { toolHooks: hooks });
    const run = await (await place.restart()).submit(agent, "Write to Ada.");
    expect((await run.result()).output).toBe("sent to ada");
    expect(seen).toEqual(["before", "asked", "after, done"]);
    expect(sent).toHaveLength(1);
  });

  test("a call that requires approval is denied without a handler, and with a handler that throws", async () => {
    const place = await openPlace(name);
    const runtime = await place.restart();
    const onAsk = (): never => {
      throw new Error("the handler is offline");
    };
    const thrown = sender({ onAsk });
    expect((await (await runtime.submit(thrown.agent, "Write.")).result()).output).toBe(
      "[denied: the approval handler failed: the handler is offline]",
    );
    const nobody = sender({}, undefined, { name: "alone" });
    const run = await runtime.submit(nobody.agent, "Write.");
    expect((await run.result()).output).toContain(
      'set the option onAsk of permissions to "wait" or a handler',
    );
    expect([thrown.sent, nobody.sent]).toEqual([[], []]);
    expect(await toldOf(run, "permission_deny")).toMatchObject([
      { data: { by: "permissions", toolName: "send" } },
    ]);
  });

  test("a handler's approval with edited arguments survives a crash before the call is made", async () => {
    const place = await openPlace(name);
    const memory = inMemoryApprovals();
    const asked: number[] = [];
    const sent: JsonValue[] = [];
    let lives = 0;
    const make = (): Agent => {
      const life = ++lives;
      const deliver = tool({
        name: "send",
        description: "Sends",
        inputSchema: { type: "object" } as const,
        risk: "critical",
        suspends: true,
        execute: async (input, { ctx }) => {
          await ctx.waitForSignal("post");
          sent.push(input);
          return "sent";
        },
      });
      const onAsk = (): ApprovalDecision => {
        asked.push(life);
        return { decision: "approved", input: { to: "bob" }, remember: true };
      };
      return new Agent({
        name: "sender",
        model: scriptedModel(life === 1 ? [send("ada")] : ["done"]),
        tools: [deliver],
        permissions: permissions({ memory, onAsk }),
      });
    };
    const run = await (await place.restart()).submit(make(), "Write.");
    await untilTold(run, "approval_decision");
    await place.restart(make());
    const found = await place.find(run.runId);
    await found.signal("post");
    await found.result();
    expect({ asked, sent }).toEqual({ asked: [1], sent: [{ to: "bob" }] });
  });

  test("a run can be cancelled while its approval handler has not answered", async () => {
    const place = await openPlace(name);
    const { agent, sent } = sender({ onAsk: () => new Promise(() => {}) });
    const run = await (await place.restart()).submit(agent, "Write to Ada.");
    await untilTold(run, "approval_request");
    await run.cancel("enough");
    expect((await run.result()).status).toBe("cancelled");
    expect(sent).toEqual([]);
  });

  test("approve() refuses an invalid decision with invalid_argument, and the approval request stays open", async () => {
    const place = await openPlace(name);
    const { agent, sent } = sender({ onAsk: "wait" });
    const run = await (await place.restart()).submit(agent, "Write to Ada.");
    const { data } = await untilTold(run, "approval_request");
    const decision = { decision: "yes" } as unknown as ApprovalDecision;
    await expect(run.approve(data.approvalId, decision)).rejects.toMatchObject({ code: "invalid_argument" });
    await run.approve(data.approvalId, { decision: "denied" });
    expect((await run.result()).output).toBe("[denied: by a person]");
    expect(sent).toEqual([]);
  });

  test("every call of a tool with approval requires it: in batches, branches, sub-agents and inside other tools", async () => {
    const place = await openPlace(name);
    const asked: string[] = [];
    const inner = tool({
      name: "inner",
      description: "Inside another",
      inputSchema: { type: "object" } as const,
      risk: "critical",
      execute: () => "in",
    });
    const outer = tool({
      name: "outer",
      description: "Calls another",
      inputSchema: { type: "object" } as const,
      risk: "critical",
      execute: async (_input, { ctx }) => {
        await ctx.tool({ callId: "nested", toolName: "inner", input: {} });
        return "out";
      },
    });
    const onAsk = ({ toolName, callId }: { toolName: string; callId: string }): ApprovalDecision => {
      asked.push(`${toolName} ${callId}`);
      return { decision: "approved" };
    };
    const gate = composeGate({ permissions: permissions({ onAsk }) });
    const child: HostedAgent = {
      id: formatAgentId({ name: "child" }),
      tools: [inner],
      ...(gate && { callPath: { tool: gate } }),
      run: async (ctx) => void (await ctx.tool({ callId: "child", toolName: "inner", input: {} })),
    };
    const parent: HostedAgent = {
      ...child,
      id: formatAgentId({ name: "parent" }),
      tools: [inner, outer],
      subAgents: [child],
      run: async (ctx) => {
        await ctx.tools([
          { callId: "one", toolName: "inner", input: {} },
          { callId: "two", toolName: "outer", input: {} },
        ]);
        await ctx.parallel({
          left: (branch) => branch.tool({ callId: "left", toolName: "inner", input: {} }),
          right: (branch) => branch.tool({ callId: "right", toolName: "inner", input: {} }),
        });
        const spawned = await ctx.spawn(child.id, null);
        if (spawned.kind === "spawned") await ctx.join(spawned.handle);
      },
    };
    await (await (await place.restart()).submit(parent, null)).result();
    expect(asked.toSorted((one, other) => one.localeCompare(other))).toEqual([
      "inner child",
      "inner left",
      "inner nested",
      "inner one",
      "inner right",
      "outer two",
    ]);
  });

  test("a tool with needsApproval requires approval even if the agent has only guardrails", async () => {
    const place = await openPlace(name);
    const asks = tool({
      name: "send",
      description: "Sends",
      inputSchema: { type: "object" } as const,
      needsApproval: true,
      execute: () => "sent",
    });
    const agent = new Agent({
      name: "sender",
      model: scriptedModel([send("ada"), reads]),
      tools: [asks],
      guardrails: [{ name: "g", beforeCall: () => ({ decision: "warn", reason: "hm" }) }],
    });
    const run = await (await place.restart()).submit(agent, "Write.");
    const { data } = await untilTold(run, "approval_request");
    await place.restart(agent.with({ model: scriptedModel([reads]) }));
    const found = await place.find(run.runId);
    await found.approve(data.approvalId, { decision: "approved" });
    expect((await found.result()).output).toBe("sent");
    // The guardrail's decision is recorded together with the verdict, because the call is not judged again.
    expect(await toldOf(found, "guardrail_decision")).toHaveLength(1);
  });
});
