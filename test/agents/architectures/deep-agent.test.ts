import { describe, expect, test } from "vitest";
import { deepAgent } from "../../../src/agents/architectures/index.ts";
import { Agent, memoryStore, openRuntime, permissions, sha256 } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { read, resultsIn, todo, turn, write } from "./deep-agent-script.ts";
import {
  architectureEventData,
  promptOf,
  resultAcrossRestart,
  runAgent,
  signalTool,
  steeringTool,
} from "./run-agent.ts";
describe("deepAgent()", () => {
  test("deepAgent() keeps todos and files and returns them as metadata of the result", async () => {
    const model = scriptedModel([
      turn(["write_todos", { todos: [todo("look", "in_progress"), todo("write")] }]),
      turn(write("notes.md", "It rains in Sens."), write("empty.md", "")),
      turn(["edit_file", { path: "notes.md", old_text: "Sens", new_text: "$& Blois" }]),
      turn(read("notes.md"), ["ls", {}], read("empty.md")),
      turn(["write_todos", { todos: [todo("look", "completed"), todo("write", "completed")] }]),
      "Done.",
    ]);
    const { result, eventNames, events } = await runAgent({
      architecture: "deep-agent",
      model,
      instructions: "Be brief.",
    });
    expect(result).toMatchObject({ status: "completed", output: "Done.", turns: 6 });
    expect(result.metadata).toEqual({
      todos: [todo("look", "completed"), todo("write", "completed")],
      files: { "notes.md": "It rains in $& Blois.", "empty.md": "" },
    });
    expect(resultsIn(model.calls[4])).toEqual([
      "It rains in $& Blois.",
      "empty.md (0 characters)\nnotes.md (21 characters)",
      "[empty]",
    ]);
    expect(eventNames).toEqual([
      "deep_agent.todos_written",
      "deep_agent.files_changed",
      "deep_agent.files_changed",
      "deep_agent.todos_written",
    ]);
    expect(architectureEventData(events, "deep_agent.files_changed")[0]).toEqual({
      files: ["notes.md", "empty.md"],
    });
    expect(model.calls[0]?.messages[0]?.content).toMatch(/^Be brief\.\n\nYou do long work/u);
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual([
      "ls",
      "read_file",
      "write_todos",
      "write_file",
      "edit_file",
      "task",
    ]);
  });

  test("a tool call of deepAgent() sees the changes to files and todos of earlier calls in the same turn", async () => {
    const model = scriptedModel([
      turn(
        read("a.md"),
        write("a.md", "one"),
        read("a.md"),
        ["edit_file", { path: "a.md", old_text: "one", new_text: "two" }],
        read("a.md"),
      ),
      "Done.",
    ]);
    const { result } = await runAgent({ architecture: deepAgent(), model });
    expect(resultsIn(model.calls[1])).toEqual([
      "there is no file a.md; existing files: none",
      "wrote a.md: 3 characters",
      "one",
      "edited a.md: 3 characters",
      "two",
    ]);
    expect(result.metadata["files"]).toEqual({ "a.md": "two" });
  });

  test("a call of a deepAgent() tool that exceeds a limit or has invalid arguments returns an error and changes nothing", async () => {
    const model = scriptedModel([
      turn(write("a.md", "aa"), write("b.md", "b")),
      turn(
        write("c.md", "c"),
        write("a.md", "far too long for it"),
        ["edit_file", { path: "a.md", old_text: "x", new_text: "" }],
        ["edit_file", { path: "a.md", old_text: "a", new_text: "" }],
        ["edit_file", { path: "b.md", old_text: "b", new_text: "far too long for it" }],
        ["edit_file", { path: "z.md", old_text: "b", new_text: "" }],
        ["write_todos", { todos: [todo("a"), todo("b")] }],
        ["write_todos", { todos: [todo("a", "some day")] }],
        ["write_todos", { todos: "a" }],
        write("", "x"),
      ),
      "Done.",
    ]);
    const { result } = await runAgent({
      architecture: deepAgent({ maxFiles: 2, maxFileCharacters: 10, maxTodos: 1 }),
      model,
    });
    expect(resultsIn(model.calls[2])).toEqual([
      "there are already 2 files, which is the maximum: write to one of them",
      "the file would have 19 characters, and the maximum is 10: use several files",
      "the old text does not occur in a.md: read the file and give the exact text",
      "the old text occurs 2 times in a.md: include more of the surrounding text",
      "the file would have 19 characters, and the maximum is 10: use several files",
      "there is no file z.md; existing files: a.md, b.md",
      "2 todos are too many: the maximum is 1",
      "todos must be a list of { content, status }, each with a non-empty content and one of the statuses pending, in_progress, completed",
      "todos must be a list of { content, status }, each with a non-empty content and one of the statuses pending, in_progress, completed",
      expect.stringContaining("path is empty"),
    ]);
    expect(result.metadata).toEqual({ files: { "a.md": "aa", "b.md": "b" } });
  });

  test("a file write of deepAgent() that is denied has no effect, and a write that a person edited takes effect as edited", async () => {
    const model = scriptedModel([
      turn(write("secret.md", "x")),
      turn(write("a.md", "mine")),
      turn(read("a.md")),
      "Done.",
    ]);
    const store = memoryStore({ hash: sha256 });
    const runtime = await openRuntime({ store, unknownPrice: "ignore" });
    const agent = new Agent({
      name: "thinker",
      model,
      architecture: deepAgent(),
      permissions: permissions({
        deny: [
          { tool: "write_file", when: (input) => JSON.stringify(input).includes("secret"), reason: "secret" },
        ],
        ask: [{ tool: "write_file" }],
        onAsk: "wait",
      }),
    });
    const run = await runtime.submit(agent, "Go");
    for await (const event of run.events()) {
      if (!("seq" in event) || event.type !== "approval_request") continue;
      const input = { path: "a.md", content: "yours" };
      await run.approve(event.data.approvalId, { decision: "approved", input, by: "ada" });
    }
    const result = await run.result();
    expect(result.metadata["files"]).toEqual({ "a.md": "yours" });
    expect(resultsIn(model.calls[3])).toEqual(["yours"]);
    await runtime.close();
  });

  test("the files of deepAgent() are available in the next invocation of the session and in no other session", async () => {
    const runtime = await openRuntime({ store: memoryStore({ hash: sha256 }), unknownPrice: "ignore" });
    const model = scriptedModel([
      turn(write("a.md", "one")),
      "Done.",
      turn(read("a.md")),
      "Read.",
      turn(["ls", {}]),
      "None.",
    ]);
    const agent = new Agent({ name: "thinker", model, architecture: deepAgent() });
    const { sessionId } = await agent.invoke("First", { runtime });
    const second = await agent.invoke("Second", { runtime, sessionId });
    expect(second.metadata["files"]).toEqual({ "a.md": "one" });
    expect(resultsIn(model.calls[3])).toEqual(["one"]);
    await agent.invoke("Third", { runtime });
    expect(resultsIn(model.calls[5])).toEqual(["[no files]"]);
    await runtime.close();
  });

  test("J7: after a restart in the middle of a turn, the calls of deepAgent() see the earlier changes", async () => {
    const model = scriptedModel([
      turn(write("a.md", "one")),
      turn(write("b.md", "two"), ["wait", {}], read("b.md"), read("a.md")),
      "Done.",
    ]);
    const createAgent = (): Agent =>
      new Agent({ name: "planner", model, tools: [signalTool], architecture: deepAgent() });
    const result = await resultAcrossRestart(createAgent);
    expect(result).toMatchObject({
      status: "completed",
      metadata: { files: { "a.md": "one", "b.md": "two" } },
    });
    expect(resultsIn(model.calls[2])).toEqual(["wrote b.md: 3 characters", '"rain"', "two", "one"]);
    expect(model.calls).toHaveLength(3);
  });

  test("deepAgent() reads steering after a turn and is interrupted at maxTurns, as react() is", async () => {
    const steering = steeringTool("Only in France.", "steer");
    const model = scriptedModel([turn(["steer", {}]), turn(["ls", {}])]);
    const { result } = await runAgent(
      { architecture: deepAgent(), model, tools: [steering.tool], maxTurns: 2 },
      "Go",
      {
        onStart: steering.onStart,
      },
    );
    expect(promptOf(model.calls[1] as never)).toBe("Only in France.");
    expect(result).toMatchObject({
      status: "max_turns",
      interruptionReason: "max_turns_exceeded",
      output: "Working.",
    });
  });

  test("B5: deepAgent() keeps its answer if a stop hook continues the run and the budget is exhausted before the next reply", async () => {
    const { result } = await runAgent({
      architecture: deepAgent(),
      model: scriptedModel(["Deep."]),
      stopHooks: [{ name: "more", shouldContinue: () => "How deep?" }],
      budget: { maxTurns: 1 },
    });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "Deep." });
  });

  test("B5, S1: deepAgent() with an exhausted budget keeps its output, files and a conversation with a result for every call", async () => {
    const { result, conversation } = await runAgent({
      architecture: deepAgent(),
      model: scriptedModel([turn(write("a.md", "one"))]),
      budget: { maxTurns: 1 },
    });
    expect(result).toMatchObject({
      status: "budget_exhausted",
      output: "Working.",
      metadata: { files: { "a.md": "one" } },
    });
    expect(conversation.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
  });

  test.for([
    [{ maxFiles: 0 }, "invalid maxFiles 0 of deepAgent(): expected an integer from 1"],
    [{ maxTodos: 0 }, "invalid maxTodos 0 of deepAgent()"],
    [{ maxFileCharacters: 0 }, "invalid maxFileCharacters 0 of deepAgent()"],
    [
      { subAgents: { general: new Agent({ name: "reader", model: scriptedModel([]) }) } },
      "deepAgent has a sub-agent named general, which is the name of the built-in sub-agent",
    ],
  ] as const)("deepAgent() refuses invalid limits and a sub-agent named general", ([options, message]) => {
    expect(() => deepAgent(options)).toThrow(message);
  });
});
