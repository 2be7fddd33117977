import { expect, test } from "vitest";
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

test("a budget with a getter of a class limits the run", async () => {
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
