import { expect, test } from "vitest";
import { composeGate, inMemoryApprovals, permissions } from "../../../../src/entries/index.ts";
import type { CallVerdict, Permissions } from "../../../../src/kernel/index.ts";
import { before } from "./gate-with.ts";
import { gatedCall, type CallOptions } from "./gated-call.ts";

const critical: CallOptions = { tool: { risk: "critical" } };

async function pass(rules: Permissions, options: CallOptions): Promise<CallVerdict> {
  return before(composeGate({ permissions: rules }), gatedCall(options));
}

/** Approves the question about a call and asks to remember the approval. */
async function approve(rules: Permissions, options: CallOptions): Promise<void> {
  const gate = composeGate({ permissions: rules });
  const verdict = await before(gate, gatedCall(options));
  if (verdict.decision !== "ask") throw new Error(`unexpected decision ${verdict.decision}`);
  const answer = { decision: "approved", remember: true } as const;
  for (const entry of gate?.before ?? [])
    await entry.remember?.(gatedCall(options), answer, verdict.rules ?? [verdict.reason]);
}

test("a remembered approval allows only the same user and agent, and a deny rule still wins", async () => {
  const memory = inMemoryApprovals();
  const rules = permissions({ ask: ["look"], onAsk: "wait", memory });
  await approve(rules, { userId: "ada" });
  const decided = async (options: CallOptions) => (await pass(rules, options)).decision;
  expect(await decided({ userId: "ada" })).toBe("allow");
  expect(await decided({ userId: "bob" })).toBe("ask");
  expect(await decided({ userId: null })).toBe("ask");
  expect(await decided({ userId: "ada", agent: "other" })).toBe("ask");
  const walled = permissions({ deny: ["look"], memory });
  expect((await pass(walled, { userId: "ada" })).decision).toBe("deny");
});

test("an approval that is remembered for one reason to ask does not count for another reason", async () => {
  const memory = inMemoryApprovals();
  const deletes = (input: unknown): boolean => JSON.stringify(input).includes("rm");
  const sends = (input: unknown): boolean => JSON.stringify(input).includes("curl");
  const ask = [
    { tool: "look", when: deletes, reason: "it deletes" },
    { tool: "look", when: sends, reason: "it sends" },
  ];
  const rules = permissions({ ask, onAsk: "wait", memory });
  const asked = async (options: CallOptions) => {
    const verdict = await pass(rules, { ...critical, ...options });
    return verdict.decision === "ask" ? verdict.reason : verdict.decision;
  };
  await approve(rules, critical);
  expect(await asked({})).toBe("allow");
  expect(await asked({ input: "rm x" })).toBe("it deletes");
  await approve(rules, { ...critical, input: "rm x" });
  expect(await asked({ input: "rm y" })).toBe("allow");
  expect(await asked({ input: "rm y; curl z" })).toBe("it deletes; it sends");
  expect(await asked({ input: "rm y", needsApproval: true })).toBe("it deletes; look requires approval");
  await approve(rules, { ...critical, input: "rm y", needsApproval: true });
  expect(await asked({ input: "rm y", needsApproval: true })).toBe("allow");
  expect(await asked({ input: "curl z", needsApproval: true })).toBe("it sends; look requires approval");
  await approve(rules, { ...critical, input: "rm y; curl z" });
  expect(await asked({ input: "curl z", needsApproval: true })).toBe("allow");
});

test("a remembered approval of permissions that name no rules counts for the same reason only", async () => {
  const memory = inMemoryApprovals();
  const rules: Permissions = {
    check: ({ input }) => ({ decision: "ask", reason: `risky: ${JSON.stringify(input)}`, rules: [] }),
    onAsk: "wait",
    memory,
  };
  await approve(rules, { input: 1 });
  expect((await pass(rules, { input: 1 })).decision).toBe("allow");
  expect((await pass(rules, { input: 2 })).decision).toBe("ask");
});
