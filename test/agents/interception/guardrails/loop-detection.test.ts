import { describe, expect, test } from "vitest";
import { loopDetection, type LoopDetectionOptions } from "../../../../src/assembly/guardrails.ts";
import { composeGate } from "../../../../src/entries/index.ts";
import type { JsonValue, SettledCall, Tool, ToolResult } from "../../../../src/kernel/index.ts";
import { text } from "../../../runtime/runtime-setup.ts";
import { after, before } from "../gate/gate-with.ts";
import { failed, gatedCall, settled } from "../gate/gated-call.ts";

interface Made {
  readonly toolName?: string;
  readonly input?: JsonValue;
  readonly result: ToolResult;
}

/**
 * Passes calls one after another through a gate with loop detection and returns the decision for each call.
 */
async function make(
  calls: readonly Made[],
  options: LoopDetectionOptions = {},
  tool: Partial<Tool> = {},
): Promise<string[]> {
  const gate = composeGate({ guardrails: [loopDetection(options)] });
  const history: SettledCall[] = [];
  const becomes: string[] = [];
  for (const { toolName = "look", input = {}, result } of calls) {
    const call = gatedCall({ toolName, input, history, tool });
    try {
      const verdict = await before(gate, call);
      const denied = verdict.decision === "deny" ? verdict.reason : undefined;
      const given = denied === undefined ? await after(gate, call, result) : failed(`[denied: ${denied}]`);
      const warned = given.output.type === "text" && given.output.text.includes("[warning");
      becomes.push(denied !== undefined ? "block" : warned ? "warn" : "allow");
      history.push(settled(toolName, input, given));
    } catch {
      becomes.push("halt");
      break;
    }
  }
  return becomes;
}

const times = (count: number, made: (index: number) => Made): Made[] =>
  Array.from({ length: count }, (_, index) => made(index));

describe("loopDetection()", () => {
  test("loopDetection() warns at the second failure of the same call and blocks after the fifth", async () => {
    const calls = times(7, () => ({ input: { q: 1 }, result: failed("no") }));
    expect(await make(calls)).toEqual(["allow", "warn", "warn", "warn", "warn", "block", "block"]);
  });

  test("loopDetection() warns at the third failure of the same tool and halts at the eighth, for any arguments", async () => {
    const calls = times(9, (index) => ({ input: { q: index }, result: failed("no") }));
    expect(await make(calls)).toEqual(["allow", "allow", "warn", "warn", "warn", "warn", "warn", "halt"]);
  });

  test("loopDetection() counts a blocked call as a failure, so that repeated attempts halt the run", async () => {
    const calls = times(12, () => ({ result: failed("no") }));
    expect((await make(calls)).slice(5)).toEqual(["block", "block", "block", "halt"]);
  });

  test("loopDetection() warns at the second equal result of a read-only tool and blocks after the fifth", async () => {
    const calls = times(8, () => ({ result: text("rain") }));
    expect(await make(calls)).toEqual(["allow", "warn", "warn", "warn", "warn", "block", "block", "block"]);
    const json = times(6, () => ({
      result: { output: { type: "json", value: { weather: "rain" } }, isError: false } as const,
    }));
    expect((await make(json)).at(-1)).toBe("block");
  });

  test("loopDetection() resets its count after a different result, a success or a call of another tool", async () => {
    const changing = times(8, (index) => ({ result: text(`at ${index}`) }));
    expect(new Set(await make(changing))).toEqual(new Set(["allow"]));
    const recovering = times(12, (index) => ({ result: index % 2 === 0 ? failed("no") : text(`${index}`) }));
    expect(new Set(await make(recovering))).toEqual(new Set(["allow"]));
    const apart = times(8, (index) => ({ toolName: `tool${index}`, result: failed("no") }));
    expect(new Set(await make(apart))).toEqual(new Set(["allow"]));
  });

  test("loopDetection() ignores the key order of a call's arguments", async () => {
    const calls = [
      { input: { a: 1, b: 2 }, result: failed("no") },
      { input: { b: 2, a: 1 }, result: failed("no") },
    ];
    expect(await make(calls)).toEqual(["allow", "warn"]);
  });

  test("loopDetection() lets destructive and polled tools return the same result repeatedly", async () => {
    const calls = times(8, () => ({ result: text("ok") }));
    expect(new Set(await make(calls, {}, { destructive: true }))).toEqual(new Set(["allow"]));
    expect(new Set(await make(calls, { polled: ["lo*"] }))).toEqual(new Set(["allow"]));
    expect((await make(calls, { idempotent: () => true }, { destructive: true })).at(-1)).toBe("block");
  });

  test("each threshold of loopDetection() can be set, and a threshold below 1 is refused", async () => {
    const calls = times(3, () => ({ result: failed("no") }));
    expect(await make(calls, { exactFailure: { block: 1 } })).toEqual(["allow", "block", "block"]);
    expect(await make(calls, { exactFailure: { warn: Infinity } })).toEqual(["allow", "allow", "warn"]);
    expect(() => loopDetection({ sameToolFailure: { halt: 0 } })).toThrow(/expected an integer from 1/u);
  });
});
