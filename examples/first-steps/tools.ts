// An agent works in a folder: it searches, edits, runs a command and asks a person. The person allows the edits and answers.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, openRuntime, permissions, tool } from "reeve";
import { askHumanTool, bashTool, fileTools, pathRule, todoTool, toolSearch } from "reeve/tools";
import { scriptedModel } from "reeve/testing";

const root = mkdtempSync(join(tmpdir(), "reeve-tools-"));
writeFileSync(join(root, "greet.txt"), "Hello, Wrold!\n");

// Thirty more tools, which the model has to find before it sees them.
const chores = Array.from({ length: 30 }, (_, index) =>
  tool({
    name: `chore_${index}`,
    description: `Does chore ${index}.`,
    inputSchema: { type: "object", properties: { times: { type: "number" } }, required: ["times"] } as const,
    async *execute({ times }) {
      for (let done = 1; done <= times; done++) yield { done };
      return `chore ${index}, ${times} times`;
    },
  }),
);

const model = scriptedModel([
  {
    toolCalls: [
      { name: "grep", input: { pattern: "Wrold" } },
      { name: "search_tools", input: { query: "chore 4" } },
    ],
  },
  {
    toolCalls: [
      { name: "todo", input: { items: [{ text: "fix the greeting", status: "doing" }] } },
      { name: "edit", input: { path: "greet.txt", oldText: "Wrold", newText: "World" } },
      { name: "bash", input: { command: "cat greet.txt" } },
      { name: "read", input: { path: "../../etc/passwd" } },
      { name: "write", input: { path: "notes/../keys.txt", content: "none" } },
      { name: "chore_4", input: { times: "2" } }, // a text where a number is due
    ],
  },
  { toolCalls: [{ name: "ask_human", input: { question: "Shall it be louder?" } }] },
  "Mended.",
]);

const coder = new Agent({
  name: "coder",
  model,
  tools: toolSearch({
    tools: [
      ...fileTools({ root }),
      bashTool({ root, sandbox: "warn" }), // default: "enforce", which needs bubblewrap
      todoTool(),
      askHumanTool(),
      ...chores,
    ],
    keep: ["read", "grep", "edit", "bash", "todo", "ask_human"],
  }),
  permissions: permissions({
    mode: "acceptEdits",
    allow: ["bash"],
    deny: [pathRule({ tool: "write", root, paths: ["keys.txt"], reason: "the keys stay as they are" })],
  }),
});

const runtime = await openRuntime();
const run = await runtime.submit(coder, "Fix the greeting.");
const results = new Map<string, string>();
const progress: unknown[] = [];
for await (const event of run.events()) {
  if (event.type === "tool_execution_update") progress.push(event.update);
  if (!("seq" in event)) continue;
  if (event.type === "approval_request") {
    console.log("asked:", JSON.stringify(event.data.input));
    await run.as("grace").approve(event.data.approvalId, { decision: "approved", input: "no, thank you" });
  }
  if (event.type !== "tool_execution_end") continue;
  const { toolName, result } = event.data;
  const text = result.output.type === "text" ? result.output.text : JSON.stringify(result.output);
  results.set(toolName, text);
  console.log(`${toolName}: ${text.split("\n")[0]}`);
  if (toolName === "edit") console.log(result.metadata?.["diff"]);
}
const { status, output } = await run.result();
await runtime.close();

assert.equal(status, "completed");
assert.equal(output, "Mended.");
assert.equal(readFileSync(join(root, "greet.txt"), "utf8"), "Hello, World!\n");
assert.equal(results.get("grep"), "greet.txt:1: Hello, Wrold!");
assert.match(results.get("bash") ?? "", /^Hello, World!/);
assert.match(results.get("read") ?? "", /outside the workspace/);
assert.equal(results.get("write"), "[denied: the keys stay as they are]");
assert.equal(results.get("chore_4"), "chore 4, 2 times");
assert.deepEqual(progress, [{ done: 1 }, { done: 2 }]);
assert.equal(results.get("ask_human"), "no, thank you");
rmSync(root, { recursive: true, force: true });
