import { expect, test } from "vitest";
import { bashTool, fetchTool, findTool, grepTool } from "../../../src/capabilities/tools/index.ts";
import { Agent, tool } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

test("tool() reads options that are getters of a class", () => {
  class Wipe {
    readonly name = "wipe";
    readonly description = "Deletes everything.";
    readonly inputSchema = { type: "object", properties: {} } as const;
    get risk() {
      return "critical" as const;
    }
    get timeoutMs(): number {
      return 5;
    }
    execute(): string {
      return "wiped";
    }
  }
  expect(tool(new Wipe())).toMatchObject({ risk: "critical", timeoutMs: 5 });
});

test("a budget object with a getter of a class limits the run", async () => {
  class Limits {
    readonly maxTurns = 5;
    get maxTokens(): number {
      return 5;
    }
  }
  const agent = new Agent({ name: "scout", model: scriptedModel(["Rain."]), budget: new Limits() });
  expect((await agent.invoke("What is the weather?")).status).toBe("budget_exhausted");
  const free = new Agent({ name: "free", model: scriptedModel(["Rain."]) });
  const { status } = await free.invoke("What is the weather?", { budget: new Limits() });
  expect(status).toBe("budget_exhausted");
});

const places = { root: "." };
test.each<[string, (options: never) => { readonly timeoutMs: number | null }, object, number | null]>([
  ["findTool", findTool, places, null],
  ["grepTool", grepTool, places, 25_000],
  ["bashTool", bashTool, { ...places, sandbox: "off" }, 152_000],
  ["fetchTool", fetchTool, {}, 35_000],
])("%s accepts null as a timeout and refuses a text", (name, create, options, timeoutMs) => {
  expect(create({ ...options, timeoutMs: null } as never).timeoutMs).toBe(timeoutMs);
  expect(() => create({ ...options, timeoutMs: "5" } as never)).toThrow(
    `invalid timeoutMs "5" of ${name}(): expected a number from 0, or null for no limit of its own`,
  );
});
