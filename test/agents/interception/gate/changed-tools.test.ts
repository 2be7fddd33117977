import { describe, expect, test } from "vitest";
import { Agent, permissions, tool, inMemoryApprovals } from "../../../../src/entries/index.ts";
import { type PermissionsOptions } from "../../../../src/agents/interception/permissions/permissions.ts";
import {
  formatAgentId,
  type ApprovalDecision,
  type ApprovalRequest,
  type HostedAgent,
  type JsonValue,
  type RunHandle,
  type Tool,
} from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { openPlace, places, toldOf, untilTold } from "./place.ts";

const send: ScriptStep = { toolCalls: [{ name: "send", input: { to: "ada" } }] };
const reads: ScriptStep = ({ messages }) => {
  const last = messages.at(-1);
  const [part] = last?.role === "tool" ? last.content : [];
  return part?.output.type === "text" ? part.output.text : "nothing";
};

const sent: string[] = [];

/** The tool `send`. Each test changes one of the fields to which approvals are bound. */
function letters(change: Partial<Tool> = {}): Tool {
  const made = tool({
    name: "send",
    description: "Sends a letter",
    inputSchema: { type: "object", properties: { to: { type: "string" } }, required: ["to"] } as const,
    needsApproval: true,
    execute: ({ to }, { callId: _callId }) => {
      sent.push(`${change.description ?? "Sends a letter"}: ${to}`);
      return `sent to ${to}`;
    },
  });
  return Object.freeze({ ...made, ...change });
}

function agentWith(tools: readonly Tool[], script: readonly ScriptStep[], rules?: PermissionsOptions): Agent {
  const model = scriptedModel(script);
  return new Agent({ name: "sender", model, tools, ...(rules && { permissions: permissions(rules) }) });
}

/** Follows the run until it has asked `count` questions, and returns them. */
async function questions(run: RunHandle, count: number): Promise<readonly ApprovalRequest[]> {
  const asked: ApprovalRequest[] = [];
  for await (const event of run.events({ types: ["approval_request"] })) {
    if (event.type !== "approval_request") continue;
    asked.push(event.data);
    if (asked.length === count) return asked;
  }
  throw new Error(`the run ended after ${asked.length} questions`);
}

const changes: readonly (readonly [string, Partial<Tool>])[] = [
  ["description", { description: "Sends a letter and a copy to the press" }],
  ["origin", { origin: { server: "other", name: "send" } }],
  ["schema", { inputSchema: { type: "object", properties: { to: { type: "string" }, bcc: {} } } }],
];

describe.each(places)("an approval of a tool that changes, with the %s store", (name) => {
  test.for(changes)(
    "a pending approval is withdrawn and asked again if the %s changed while the run waited",
    async ([, change]) => {
      sent.length = 0;
      const place = await openPlace(name);
      const run = await (await place.restart()).submit(agentWith([letters()], [send]), "Write.");
      const { data: old } = await untilTold(run, "approval_request");
      await place.restart(agentWith([letters(change)], [reads]));
      const found = await place.find(run.runId);
      // The answer to the old question arrives, and does not count.
      await found.approve(old.approvalId, { decision: "approved" });
      const [, again] = await questions(found, 2);
      expect(again?.approvalId).not.toBe(old.approvalId);
      expect(again?.toolDigest).not.toBe(old.toolDigest);
      expect(again).toMatchObject({ kind: "tool_call", toolName: "send", input: { to: "ada" } });
      expect(sent).toEqual([]);
      expect(await decisions(found)).toEqual([
        [old.approvalId, { decision: "denied", by: "runtime", reason: expect.stringContaining("changed") }],
      ]);
      await found.approve(again?.approvalId ?? "", { decision: "approved" });
      expect((await found.result()).output).toBe("sent to ada");
      expect(sent).toHaveLength(1);
    },
  );

  test("an approval that arrived before the restart does not count if the tool changed meanwhile", async () => {
    sent.length = 0;
    const place = await openPlace(name);
    const run = await (await place.restart()).submit(agentWith([letters()], [send]), "Write.");
    const { data: old } = await untilTold(run, "approval_request");
    // The second process hosts no agent: it only takes the answer.
    await place.restart();
    await (await place.find(run.runId)).approve(old.approvalId, { decision: "approved" });
    await place.restart(agentWith([letters({ description: "Burns the letter" })], [reads]));
    const found = await place.find(run.runId);
    const [, again] = await questions(found, 2);
    await found.approve(again?.approvalId ?? "", { decision: "denied", reason: "not this tool" });
    expect((await found.result()).output).toBe("[denied: not this tool]");
    expect(sent).toEqual([]);
  });

  test("an approval that was recorded for the old tool does not count if the process died before the call's result", async () => {
    const place = await openPlace(name);
    const started: string[] = [];
    const slow = (description: string): Tool =>
      tool({
        name: "send",
        description,
        inputSchema: { type: "object" } as const,
        needsApproval: true,
        suspends: true,
        execute: async (_input, { ctx }) => {
          started.push(description);
          await ctx.waitForSignal("post");
          return "sent";
        },
      });
    const run = await (await place.restart()).submit(agentWith([slow("old")], [send]), "Write.");
    const { data: old } = await untilTold(run, "approval_request");
    await run.approve(old.approvalId, { decision: "approved" });
    await untilTold(run, "approval_decision");
    await place.restart(agentWith([slow("new")], [reads]));
    const found = await place.find(run.runId);
    // The mail wakes the run, which is suspended.
    await found.signal("post");
    const [, again] = await questions(found, 2);
    await found.approve(again?.approvalId ?? "", { decision: "skipped" });
    expect((await found.result()).output).toBe("[skipped by a person]");
    expect(started).not.toContain("new");
  });

  test("a tool that changes and changes back asks for approval three times, and only the last answer counts", async () => {
    sent.length = 0;
    const place = await openPlace(name);
    const run = await (await place.restart()).submit(agentWith([letters()], [send]), "Write.");
    const [first] = await questions(run, 1);
    await place.restart(agentWith([letters({ description: "Other" })], []));
    await (await place.find(run.runId)).approve(first?.approvalId ?? "", { decision: "approved" });
    const [, second] = await questions(await place.find(run.runId), 2);
    await place.restart(agentWith([letters()], [reads]));
    const found = await place.find(run.runId);
    await found.approve(second?.approvalId ?? "", { decision: "approved" });
    const [, , third] = await questions(found, 3);
    expect(third?.toolDigest).toBe(first?.toolDigest);
    expect(new Set([first?.approvalId, second?.approvalId, third?.approvalId]).size).toBe(3);
    await expect(found.approve(first?.approvalId ?? "", { decision: "approved" })).rejects.toMatchObject({
      code: "already_exists",
    });
    await found.approve(third?.approvalId ?? "", { decision: "denied" });
    expect((await found.result()).output).toBe("[denied: by a person]");
    expect(sent).toEqual([]);
  });

  test("a third process answers the second question of a changed tool", async () => {
    sent.length = 0;
    const place = await openPlace(name);
    const changed = letters({ description: "Other" });
    const run = await (await place.restart()).submit(agentWith([letters()], [send]), "Write.");
    const [first] = await questions(run, 1);
    await place.restart(agentWith([changed], []));
    await (await place.find(run.runId)).approve(first?.approvalId ?? "", { decision: "approved" });
    const [, again] = await questions(await place.find(run.runId), 2);
    await place.restart(agentWith([changed], [reads]));
    const found = await place.find(run.runId);
    await found.approve(again?.approvalId ?? "", { decision: "approved" });
    expect((await found.result()).output).toBe("sent to ada");
    expect((await toldOf(found, "approval_request")).length).toBe(2);
  });

  test("a changed tool is judged again, so that a new deny rule applies to it", async () => {
    const place = await openPlace(name);
    const rules: PermissionsOptions = { onAsk: "wait" };
    const run = await (
      await place.restart()
    ).submit(agentWith([letters({ risk: "critical" })], [send], rules), "Write.");
    const [old] = await questions(run, 1);
    const changed = letters({ risk: "critical", description: "Other" });
    await place.restart(agentWith([changed], [reads], { ...rules, deny: ["send"] }));
    const found = await place.find(run.runId);
    await found.approve(old?.approvalId ?? "", { decision: "approved" });
    expect((await found.result()).output).toBe("[denied: the rule for send forbids it]");
    expect(await toldOf(found, "approval_decision")).toHaveLength(1);
  });

  test("a remembered approval of the old tool does not count for the changed tool", async () => {
    const place = await openPlace(name);
    const memory = inMemoryApprovals();
    const asked: (string | undefined)[] = [];
    const onAsk = ({ toolDigest }: ApprovalRequest): ApprovalDecision => {
      asked.push(toolDigest);
      return { decision: "approved", remember: true };
    };
    const rules: PermissionsOptions = { memory, onAsk };
    for (const description of ["old", "old", "new", "new"]) {
      const runtime = await place.restart();
      const agent = agentWith([letters({ description, risk: "critical" })], [send, reads], rules);
      expect((await (await runtime.submit(agent, "Write.")).result()).output).toBe("sent to ada");
    }
    expect(asked).toHaveLength(2);
    expect(new Set(asked).size).toBe(2);
  });

  test("a tool that is replaced in the same process while its approval is pending asks for approval again", async () => {
    sent.length = 0;
    const place = await openPlace(name);
    let tools: readonly Tool[] = [letters()];
    const outputs: JsonValue[] = [];
    const agent: HostedAgent = {
      id: formatAgentId({ name: "caller" }),
      get tools() {
        return tools;
      },
      run: async (ctx) => {
        const result = await ctx.tool({ callId: "c", toolName: "send", input: { to: "ada" } });
        outputs.push(result.output as unknown as JsonValue);
      },
    };
    const run = await (await place.restart()).submit(agent, null);
    const [old] = await questions(run, 1);
    tools = [letters({ description: "Sends it to everyone" })];
    await run.approve(old?.approvalId ?? "", { decision: "approved" });
    const [, again] = await questions(run, 2);
    expect(sent).toEqual([]);
    await run.approve(again?.approvalId ?? "", { decision: "approved" });
    await run.result();
    expect(sent).toEqual(["Sends it to everyone: ada"]);
  });

  test.for<[string, readonly Tool[], RegExp]>([
    ["is gone", [], /^there is no tool send/u],
    [
      "does not accept the arguments any more",
      [
        tool({
          name: "send",
          description: "Sends a letter",
          inputSchema: { type: "object", required: ["bcc"] } as const,
          needsApproval: true,
          execute: () => "sent",
        }),
      ],
      /do not match its schema/u,
    ],
    [
      "needs no approval any more",
      [letters({ description: "Harmless", needsApproval: () => false })],
      /^sent to ada/u,
    ],
  ])(
    "the approval question of a call is withdrawn if its tool %s after a restart",
    async ([, tools, output]) => {
      const place = await openPlace(name);
      const run = await (await place.restart()).submit(agentWith([letters()], [send]), "Write.");
      const [old] = await questions(run, 1);
      await place.restart(agentWith(tools, [reads]));
      const found = await place.find(run.runId);
      await found.approve(old?.approvalId ?? "", { decision: "approved" });
      expect((await found.result()).output).toMatch(output);
      expect(await toldOf(found, "approval_decision")).toMatchObject([
        { data: { approvalId: old?.approvalId, decision: { decision: "denied", by: "runtime" } } },
      ]);
    },
  );

  test("a call whose tool changes while each question waits is denied after 16 questions", async () => {
    const place = await openPlace(name);
    let version = 0;
    let asked = 0;
    const agent: HostedAgent = {
      id: formatAgentId({ name: "caller" }),
      get tools() {
        return [letters({ description: `Version ${version}` })];
      },
      run: async (ctx) => {
        const result = await ctx.tool({ callId: "c", toolName: "send", input: { to: "ada" } });
        return result.output as unknown as JsonValue;
      },
    };
    const run = await (await place.restart()).submit(agent, null);
    for await (const event of run.events({ types: ["approval_request", "run_end"] })) {
      if (event.type !== "approval_request") break;
      asked++;
      version++;
      await run.approve(event.data.approvalId, { decision: "approved" });
    }
    expect(asked).toBe(16);
    expect((await run.result()).output).toMatchObject({
      text: "[denied: send changed 16 times while it waited for approval]",
    });
  });

  test("J4: a tool that changes after its call was recorded neither asks again nor stops the replay", async () => {
    sent.length = 0;
    const place = await openPlace(name);
    const waiting = tool({
      name: "pause",
      description: "Waits",
      inputSchema: { type: "object" } as const,
      suspends: true,
      execute: async (_input, { ctx }) => {
        await ctx.waitForSignal("go");
        return "went on";
      },
    });
    const pause: ScriptStep = { toolCalls: [{ name: "pause", input: {} }] };
    const first = agentWith([letters(), waiting], [send, pause]);
    const run = await (await place.restart()).submit(first, "Write, then wait.");
    const [asked] = await questions(run, 1);
    await run.approve(asked?.approvalId ?? "", { decision: "approved" });
    for await (const event of run.events({ types: ["tool_execution_start"] }))
      if (event.type === "tool_execution_start" && event.data.toolName === "pause") break;
    await place.restart(agentWith([letters({ description: "Other" }), waiting], [reads]));
    const found = await place.find(run.runId);
    await found.signal("go");
    expect(await found.result()).toMatchObject({ status: "completed", output: "went on" });
    expect(sent).toHaveLength(1);
    expect(await toldOf(found, "approval_request")).toHaveLength(1);
  });
});

async function decisions(run: RunHandle): Promise<readonly (readonly [string, ApprovalDecision])[]> {
  const found: (readonly [string, ApprovalDecision])[] = [];
  for await (const event of run.events({ types: ["approval_request", "approval_decision"] })) {
    if (event.type === "approval_decision") found.push([event.data.approvalId, event.data.decision]);
    else if (event.type === "approval_request" && found.length > 0) return found;
  }
  return found;
}
