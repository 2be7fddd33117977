import { describe, expect, test } from "vitest";
import { deepAgent } from "../../../src/agents/architectures/index.ts";
import { Agent, memoryStore, openRuntime, permissions, sha256, tool } from "../../../src/index.ts";
import type { RunHandle } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { read, resultsIn, todo, turn, write } from "./deep-agent-script.ts";
import { promptOf, architectureEventData, runAgent } from "./run-agent.ts";
import { findRun } from "../../runtime/find-run.ts";

describe("a deep agent", () => {
  test("keeps a plan and files, and gives them with its answer", async () => {
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

  test("a call sees what those before it in the same turn did", async () => {
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
      "there is no file a.md; there are: none",
      "wrote a.md: 3 characters",
      "one",
      "edited a.md: 3 characters",
      "two",
    ]);
    expect(result.metadata["files"]).toEqual({ "a.md": "two" });
  });

  test("what cannot be done is said, and changes nothing", async () => {
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
      "there are 2 files, and there may be no more: write to one of them",
      "that would be 19 characters, and a file has 10 at most: use several files",
      "the old text is not in a.md: read it, and give the text to the letter",
      "the old text is in a.md 2 times: give more of what is around it",
      "that would be 19 characters, and a file has 10 at most: use several files",
      "there is no file z.md; there are: a.md, b.md",
      "2 things to do are too many: 1 at most",
      "todos must be a list of { content, status }, with a content and one of the statuses pending, in_progress, completed",
      "todos must be a list of { content, status }, with a content and one of the statuses pending, in_progress, completed",
      expect.stringContaining("path is empty"),
    ]);
    expect(result.metadata).toEqual({ files: { "a.md": "aa", "b.md": "b" } });
  });

  test("a write that is refused at the gate did not happen; one that a person changed happened as changed", async () => {
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

  test("files are there in the next invocation of the conversation, and in no other", async () => {
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

  test("J7: after a restart in the middle of a turn, its calls see what was done before it", async () => {
    const store = memoryStore({ hash: sha256 });
    const wait = tool({
      name: "wait",
      description: "Waits",
      inputSchema: { type: "object" },
      suspends: true,
      concurrency: "sequential",
      execute: async (_input, { ctx }) => JSON.stringify(await ctx.waitForSignal("seen")),
    });
    const model = scriptedModel([
      turn(write("a.md", "one")),
      turn(write("b.md", "two"), ["wait", {}], read("b.md"), read("a.md")),
      "Done.",
    ]);
    const make = (): Agent => new Agent({ name: "thinker", model, tools: [wait], architecture: deepAgent() });
    const one = await openRuntime({ store, unknownPrice: "ignore" });
    let run = await one.submit(make(), "Go");
    for await (const event of run.events()) if (event.type === "task_suspend") break;
    await one.close();
    const two = await openRuntime({ store, unknownPrice: "ignore" });
    two.register(make());
    run = await findRun(two, run);
    await run.signal("seen", "rain");
    const result = await run.result();
    expect(result).toMatchObject({
      status: "completed",
      metadata: { files: { "a.md": "one", "b.md": "two" } },
    });
    expect(resultsIn(model.calls[2])).toEqual(["wrote b.md: 3 characters", '"rain"', "two", "one"]);
    expect(model.calls).toHaveLength(3);
    await two.close();
  });

  test("hears what the user says, and meets its bound as ReAct does", async () => {
    let handle: RunHandle | undefined;
    const steer = tool({
      name: "steer",
      description: "Steers",
      inputSchema: { type: "object" },
      execute: async () => {
        await handle?.steer("Only in France.");
        return "said";
      },
    });
    const model = scriptedModel([turn(["steer", {}]), turn(["ls", {}])]);
    const { result } = await runAgent(
      { architecture: deepAgent(), model, tools: [steer], maxTurns: 2 },
      "Go",
      {
        onStart: (run) => (handle = run),
      },
    );
    expect(promptOf(model.calls[1] as never)).toBe("Only in France.");
    expect(result).toMatchObject({
      status: "max_turns",
      interruptionReason: "max_turns_exceeded",
      output: "Working.",
    });
  });

  test("B5: sent on by a stop hook, and out of money before it says more, it keeps its answer", async () => {
    const { result } = await runAgent({
      architecture: deepAgent(),
      model: scriptedModel(["Deep."]),
      stopHooks: [{ name: "more", shouldContinue: () => "How deep?" }],
      budget: { maxTurns: 1 },
    });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "Deep." });
  });

  test("B5, S1: out of money, it keeps what it said, its files, and the conversation with every call answered", async () => {
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
    expect(conversation.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
  });

  test.for([
    [{ maxFiles: 0 }, "maxFiles of deepAgent is 0: it must be an integer from 1"],
    [{ maxTodos: 0 }, "maxTodos of deepAgent is 0"],
    [{ maxFileCharacters: 0 }, "maxFileCharacters of deepAgent is 0"],
    [
      { subAgents: { general: new Agent({ name: "reader", model: scriptedModel([]) }) } },
      "a sub-agent of deepAgent is named general, which is what it calls itself",
    ],
  ] as const)("refuses options that make no sense", ([options, message]) => {
    expect(() => deepAgent(options)).toThrow(message);
  });
});
