import { describe, expect, test } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { skillTool } from "../../../src/capabilities/tools/index.ts";
import { checkSkill, type ModelRequest, type Skill } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

const notes: Skill = {
  name: "release-notes",
  description: "How release notes\n  are written",
  read: async () => "# Notes\nBe brief.",
};
const secret: Skill = {
  name: "on-call",
  description: "For people",
  hidden: true,
  read: async () => "the number",
};

/** Returns what the model sees when it asks for a skill, and what the log keeps of it. */
async function ask(skills: readonly Skill[], name: string, options: { readonly maxChars?: number } = {}) {
  const requests: ModelRequest[] = [];
  const model = scriptedModel([
    (request) => {
      requests.push(request);
      return { toolCalls: [{ name: "skill", input: { name } }] };
    },
    (request) => {
      requests.push(request);
      return "done";
    },
  ]);
  const runtime = await createRuntime({ unknownPrice: "ignore" });
  const agent = new Agent({ name: "writer", model, tools: [skillTool({ skills, ...options })] });
  const run = await runtime.submit(agent, "write");
  await run.result();
  const ends: unknown[] = [];
  for await (const event of run.events({ types: ["tool_execution_end"] })) ends.push(event);
  await runtime.close();
  return { tools: requests[0]?.tools ?? [], said: JSON.stringify(requests[1]?.messages.at(-1)), ends };
}

describe("skillTool()", () => {
  test("skillTool() lists names and descriptions, and returns the body of a skill by its name", async () => {
    const { tools, said, ends } = await ask([notes, secret], "release-notes");
    expect(tools[0]?.description).toMatch(/\n- release-notes: How release notes are written$/u);
    expect(said).toContain(String.raw`# Notes\nBe brief.`);
    expect(ends).toMatchObject([
      { data: { result: { isError: false, metadata: { skill: "release-notes", chars: 17, cut: false } } } },
    ]);
  });

  test("SK3: skillTool() neither lists nor loads a hidden skill", async () => {
    const { tools, said } = await ask([notes, secret], "on-call");
    expect(JSON.stringify(tools)).not.toContain("on-call");
    expect(said).toContain("there is no skill named on-call; use one of: release-notes");
    expect(said).not.toContain("the number");
  });

  test("skillTool() reads the body of a skill at each call, and reports a body that cannot be read or is empty", async () => {
    let version = 0;
    const changing = { ...notes, read: async () => `version ${++version}` };
    expect((await ask([changing], "release-notes")).said).toContain("version 1");
    expect((await ask([changing], "release-notes")).said).toContain("version 2");
    const broken = { ...notes, read: async () => Promise.reject(new Error("the disk is gone")) };
    const { said, ends } = await ask([broken], "release-notes");
    expect(said).toContain("could not be read: the disk is gone");
    expect(ends).toMatchObject([{ data: { result: { isError: true } } }]);
    expect((await ask([{ ...notes, read: async () => " \n" }], "release-notes")).said).toContain("is empty");
  });

  test("skillTool() cuts the body of a skill that is too long and says so", async () => {
    const long = { ...notes, read: async () => "x".repeat(50) };
    const { said } = await ask([long], "release-notes", { maxChars: 20 });
    expect(said).toContain(String.raw`${"x".repeat(20)}\n[... 30 more characters]`);
  });

  test("skillTool() refuses two skills with one name, and a list in which every skill is hidden", () => {
    expect(() => skillTool({ skills: [notes, { ...notes }] })).toThrow("two skills are named release-notes");
    expect(() => skillTool({ skills: [secret] })).toThrow("every skill is hidden from the model");
  });
});

test.each(["", "Release", "a_b", "a b", "a/b", "x".repeat(65), "é"])(
  "SK1: checkSkill() refuses the name %j",
  (name) => {
    expect(() => checkSkill({ ...notes, name })).toThrow("1 to 64 characters of a-z, 0-9 and -");
  },
);

test.each(["", " \n", "x".repeat(1_025)])(
  "SK2: checkSkill() refuses a description that is empty or too long",
  (description) => {
    expect(() => checkSkill({ ...notes, description })).toThrow(/description/u);
  },
);
