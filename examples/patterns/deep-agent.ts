// Long work: a plan, files that belong to the conversation, and sub-agents for parts of the task. The next call finds the files again.
import assert from "node:assert/strict";
import { Agent } from "reeve";
import { deepAgent, drawAgent } from "reeve/architectures";
import { scriptedModel } from "reeve/testing";

const reader = new Agent({
  name: "reader",
  description: "Reads old books",
  model: scriptedModel(["The roll of 1279 names two reeves."]),
});

const todos = (first: string, second: string) => ({
  todos: [
    { content: "Ask the reader", status: first },
    { content: "Write the report", status: second },
  ],
});

const scholar = new Agent({
  name: "scholar",
  architecture: deepAgent({ subAgents: { reader } }),
  model: scriptedModel([
    { toolCalls: [{ name: "write_todos", input: todos("in_progress", "pending") }] },
    { toolCalls: [{ name: "task", input: { agent: "reader", task: "What does the roll say of reeves?" } }] },
    {
      toolCalls: [
        {
          name: "write_file",
          input: { path: "report.md", content: "Two reeves are named in the roll of 1279." },
        },
        { name: "write_todos", input: todos("completed", "completed") },
      ],
    },
    "The report is written.",
    {
      toolCalls: [
        {
          name: "edit_file",
          input: { path: "report.md", old_text: "Two reeves", new_text: "Two reeves, Adam and Hugh," },
        },
      ],
    },
    "They are named now.",
  ]),
});
console.log(drawAgent(scholar));

const first = await scholar.invoke("Write a report on the reeves of the roll.");
console.log(first.output, JSON.stringify(first.metadata));
assert.deepEqual(first.metadata["todos"], todos("completed", "completed").todos);

const second = await scholar.invoke("Add their names.", { sessionId: first.sessionId });
const { "report.md": report } = second.metadata["files"] as Record<string, string>;
console.log(report);
assert.equal(report, "Two reeves, Adam and Hugh, are named in the roll of 1279.");
