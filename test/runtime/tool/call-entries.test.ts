import { describe, expect, test } from "vitest";
import type {
  BeforeCall,
  CallVerdict,
  JsonValue,
  ToolPipeline,
  ToolResult,
} from "../../../src/kernel/index.ts";
import { agent, setUp, simpleTool, text, typesOf } from "../runtime-setup.ts";

/** Makes one tool call with the given checks and returns its result. */
async function call(
  pipeline: ToolPipeline,
  input: JsonValue = { at: 1 },
  { needsApproval = false, maxValueBytes = 100_000 } = {},
) {
  const { runtime, events } = await setUp({ maxValueBytes });
  const executed: unknown[] = [];
  const results: ToolResult[] = [];
  const write = simpleTool({
    name: "write",
    needsApproval,
    execute: async (given) => {
      executed.push(given);
      return text("done");
    },
  });
  const code = async (ctx: Parameters<Parameters<typeof agent>[1]>[0]): Promise<void> => {
    results.push(await ctx.tool({ callId: "c", toolName: "write", input }));
  };
  const worker = agent("caller", code, { tools: [write], callPath: { tool: pipeline } });
  const run = await runtime.submit(worker, null);
  const { status } = await run.result();
  const types = typesOf(await events(run.runId));
  return { executed, result: results[0], status, types };
}

const before = (name: string, decide: BeforeCall["decide"]): BeforeCall => ({ name, decide });
const failed = (message: string): ToolResult => ({ ...text(message), isError: true });

describe("checks before a tool call", () => {
  test("arguments that a hook or guardrail edits pass all checks before the call again, which may then deny the call", async () => {
    const seen: unknown[] = [];
    const rules = before("rules", ({ call: { input } }) => {
      seen.push(input);
      return (input as { at: number }).at > 5
        ? { decision: "deny", by: "rules", reason: "too late" }
        : undefined;
    });
    const editing = before("editing", () => ({ decision: "edit", input: { at: 10 } }));
    const { executed, result } = await call({ before: [rules, editing] });
    expect(seen).toEqual([{ at: 1 }, { at: 10 }]);
    expect(executed).toEqual([]);
    expect(result).toEqual(failed("[denied: too late]"));
  });

  test("a check that makes the same edit of arguments again changes nothing, and the edited arguments are executed", async () => {
    const editing = before("editing", () => ({ decision: "edit", input: { at: 10 } }));
    expect(await call({ before: [editing] })).toMatchObject({ executed: [{ at: 10 }], result: text("done") });
  });

  test("a tool call whose arguments a check edits again and again is not executed", async () => {
    const rising = before("rising", ({ sent }) => ({
      decision: "edit",
      input: { at: (sent as { at: number }).at + 1 },
    }));
    const { executed, result } = await call({ before: [rising] });
    expect(executed).toEqual([]);
    expect(result).toEqual(
      failed("the arguments of write were edited 16 times: an entry must not change its own edit"),
    );
  });

  test("the first check that allows a tool call ends the questions, and the tool's needsApproval does not count", async () => {
    const allow = before("allow", () => ({ decision: "allow" }));
    const deny = before("deny", () => ({ decision: "deny", by: "deny", reason: "never asked" }));
    const { executed, types } = await call({ before: [allow, deny] }, { at: 1 }, { needsApproval: true });
    expect(executed).toEqual([{ at: 1 }]);
    expect(types).not.toContain("approval_request");
  });

  test("a check that answers a tool call itself takes the place of the call, and no denial is recorded", async () => {
    const answer = before("answer", () => ({ decision: "answer", result: text("known") }));
    const { executed, result, types } = await call({ before: [answer] });
    expect({ executed, result }).toEqual({ executed: [], result: text("known") });
    expect(types).not.toContain("permission_deny");
  });

  test("a check of a tool call that warns does not decide, and the next check is asked", async () => {
    const warn = before("warn", () => ({ decision: "warn", objections: [{ by: "warn", reason: "hm" }] }));
    const deny = before("deny", () => ({ decision: "deny", by: "deny", reason: "no" }));
    expect((await call({ before: [warn, deny] })).result).toEqual(failed("[denied: no]"));
  });

  test.each(["before", "after"] as const)(
    "a check %s a tool call that halts stops the run as guardrail_tripped",
    async (phase) => {
      const halt = {
        name: "halt",
        decide: () => ({ decision: "halt", by: "halt", reason: "enough" }) as const,
      };
      const { status, executed } = await call({ [phase]: [halt] });
      expect({ status, executed: executed.length }).toEqual({
        status: "guardrail_tripped",
        executed: phase === "before" ? 0 : 1,
      });
    },
  );
});

/** Casts a value to what a check that is written in JavaScript may return. */
const verdictOf = (value: unknown): CallVerdict => value as CallVerdict;
const known = "use allow, answer, ask, deny, edit, halt, terminate or warn";
const invalid: readonly (readonly [verdict: unknown, problem: string])[] = [
  [{ decision: "denied", by: "x", reason: "no" }, `unknown decision "denied"; ${known}`],
  [{ decision: "Deny", by: "x", reason: "no" }, `unknown decision "Deny"; ${known}`],
  [{ decision: "block" }, `unknown decision "block"; ${known}`],
  [{}, `unknown decision undefined; ${known}`],
  [false, "expected an object with a decision, or undefined, not false"],
  [null, "expected an object with a decision, or undefined, not null"],
  ["deny", 'expected an object with a decision, or undefined, not "deny"'],
  [{ decision: "deny", by: "x" }, "the decision deny requires a reason as text"],
  [{ decision: "ask", by: "x", reason: 1 }, "the decision ask requires a reason as text"],
  [{ decision: "edit" }, "the decision edit requires the input"],
  [{ decision: "answer" }, "the decision answer requires a result with an output"],
  [{ decision: "answer", result: "cached" }, "the decision answer requires a result with an output"],
];

describe("an invalid verdict of a check of a tool call", () => {
  test.each(invalid)(
    "an invalid verdict of a check before a tool call denies the call: %j",
    async (verdict, problem) => {
      const { executed, result, types, status } = await call({
        before: [before("rules", () => verdictOf(verdict)), before("allow", () => ({ decision: "allow" }))],
      });
      expect({ executed, status }).toEqual({ executed: [], status: "completed" });
      expect(result).toEqual(failed(`[denied: rules failed: invalid verdict: ${problem}]`));
      expect(types).toContain("permission_deny");
    },
  );

  test.each(invalid)(
    "an invalid verdict of a check after a tool call withholds its result: %j",
    async (verdict, problem) => {
      const { result, status } = await call({ after: [{ name: "rules", decide: () => verdictOf(verdict) }] });
      expect(status).toBe("completed");
      expect(result).toEqual(failed(`[withheld: rules failed: invalid verdict: ${problem}]`));
    },
  );
});

describe("the result of a check that answers before a tool call", () => {
  const answering = (value: unknown): ToolPipeline => {
    const result = { output: { type: "json", value }, isError: false };
    return { before: [before("cache", () => verdictOf({ decision: "answer", result }))] };
  };

  test("J10: the result of a check that answers before a call is frozen like the result of a tool body", async () => {
    const { result } = await call(answering({ at: [1] }));
    expect(result).toEqual({ output: { type: "json", value: { at: [1] } }, isError: false });
    expect(Object.isFrozen(result?.output)).toBe(true);
  });

  test.each([
    ["a BigInt", { n: 10n }],
    ["a Date", { d: new Date(0) }],
    ["a function", { f: () => 1 }],
  ])(
    "T2: %s in the result of a check that answers before a call is an error for the model, and the run continues",
    async (_name, value) => {
      const { result, status, executed } = await call(answering(value));
      expect({ status, executed }).toEqual({ status: "completed", executed: [] });
      expect(result).toMatchObject({
        isError: true,
        output: { text: expect.stringContaining("the result of tool write") },
      });
    },
  );

  test("the result of a check above maxValueBytes is an error for the model, and the run continues", async () => {
    const { result, status } = await call(answering("x".repeat(5000)), { at: 1 }, { maxValueBytes: 4000 });
    expect(status).toBe("completed");
    expect(result).toMatchObject({
      isError: true,
      output: { text: expect.stringContaining("the result of tool write is too large") },
    });
  });
});

describe("checks after a tool call", () => {
  const shout = {
    name: "shout",
    decide: (_call: unknown, { output }: ToolResult) =>
      ({
        decision: "answer",
        result: text(output.type === "text" ? output.text.toUpperCase() : ""),
      }) as const,
  };

  test("each check after a tool call sees the result as the checks before it left it", async () => {
    const warn = {
      name: "warn",
      decide: () => ({ decision: "warn", objections: [{ by: "warner", reason: "hm" }] }) as const,
    };
    expect((await call({ after: [shout, warn] })).result).toEqual(
      text("DONE\n\n[warning by the warner: hm]"),
    );
  });

  test("a check that denies after a tool call withholds the result, and the checks after it see what is left", async () => {
    const deny = { name: "deny", decide: () => ({ decision: "deny", by: "rule", reason: "no" }) as const };
    const { result, executed } = await call({ after: [deny, shout] });
    expect(executed).toHaveLength(1);
    expect(result).toEqual(text("[WITHHELD BY THE RULE: NO]"));
  });

  test("a check that throws after a tool call withholds the result", async () => {
    const broken = {
      name: "broken",
      decide: () => {
        throw new Error("boom");
      },
    };
    expect((await call({ after: [broken] })).result).toEqual(failed("[withheld: broken failed: boom]"));
  });

  test("a check after a tool call that terminates replaces the result and asks the agent's loop to end", async () => {
    const last = { name: "last", decide: () => ({ decision: "terminate", result: text("bye") }) as const };
    expect((await call({ after: [last] })).result).toEqual({ ...text("bye"), terminate: true });
  });

  test("a decision that a check cannot make before or after a tool call counts as an error of the check", async () => {
    const edit = { name: "late", decide: () => ({ decision: "edit", input: {} }) as const };
    expect((await call({ after: [edit] })).result).toEqual(
      failed("[withheld: late failed: the decision edit is not possible in this phase of a call]"),
    );
    const early = before("early", () => ({ decision: "terminate", result: text("bye") }));
    expect((await call({ before: [early] })).result).toEqual(
      failed("[denied: early failed: the decision terminate is not possible in this phase of a call]"),
    );
  });
});
