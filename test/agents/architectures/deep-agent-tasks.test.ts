import { describe, expect, test } from "vitest";
import { deepAgent } from "../../../src/agents/architectures/index.ts";
import { Agent, slidingWindow, summarization, tool } from "../../../src/entries/index.ts";
import { messageText } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedReply } from "../../../src/testing/index.ts";
import { read, resultsIn, turn, write, type Call } from "./deep-agent-script.ts";
import { BarrierModel, cancellingTool, promptOf, runAgent } from "./run-agent.ts";

describe("the task tool of deepAgent()", () => {
  test("the task tool of deepAgent() runs the sub-agents of one turn in parallel and passes the named files to them", async () => {
    const meeting = new BarrierModel(["from one", "from the other"], 2);
    const reader = new Agent({ name: "reader", description: "Reads", model: meeting });
    const writer = new Agent({ name: "writer", model: meeting });
    const model = scriptedModel([
      turn(write("a.md", "the text")),
      turn(
        ["task", { agent: "reads", task: "Read it.", files: "a.md\n" }],
        ["task", { agent: "writes", task: "Write it." }],
      ),
      "Done.",
    ]);
    const architecture = deepAgent({
      subAgents: { reads: reader, writes: { agent: writer, description: "Writes well" } },
    });
    expect(architecture.declaredWorkers()).toEqual({ reads: reader, writes: writer });
    const { result, events } = await runAgent({ architecture, model });
    expect(result.status).toBe("completed");
    expect(meeting.maxInFlight).toBe(2);
    expect(events.filter(({ type }) => type === "spawn_start")).toHaveLength(2);
    expect(meeting.calls.map(promptOf).toSorted()).toEqual([
      "# Task\nRead it.\n\n# Files\n## a.md\nthe text",
      "Write it.",
    ]);
    expect([...resultsIn(model.calls[2])].toSorted()).toEqual(["from one", "from the other"]);
    const { description } = model.calls[0]?.tools?.find(({ name }) => name === "task") ?? {};
    expect(description).toContain("- reads: Reads\n- writes: Writes well\n- general: yourself,");
  });

  test("H4: a refused seat, a failed sub-agent and a missing file are results of the task tool for the model of deepAgent()", async () => {
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const reader = new Agent({ name: "reader", model: scriptedModel([{ error }]) });
    const ask = (agent: string, files = ""): Call => ["task", { agent, task: "Read it.", files }];
    const run = async (maxAgents: number) => {
      const model = scriptedModel([
        turn(ask("reads"), ask("reads", "b.md"), ask("nobody")),
        "I did it myself.",
      ]);
      const { result } = await runAgent(
        { architecture: deepAgent({ subAgents: { reads: reader } }), model },
        "Go",
        {
          spawnBudget: { maxAgents },
        },
      );
      expect(result).toMatchObject({ status: "completed", output: "I did it myself." });
      return resultsIn(model.calls[1]);
    };
    expect(await run(1)).toEqual([
      expect.stringContaining("reads was not spawned: every seat is taken"),
      "there is no file b.md",
      expect.stringContaining("agent must be one of reads, general"),
    ]);
    expect((await run(2))[0]).toContain("reads ended with status failed: ");
  });

  test("the sub-agent general of deepAgent() gets the agent's tools and read access to the files, but not the conversation", async () => {
    const seen: string[] = [];
    const look = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object" },
      execute: () => {
        seen.push("looked");
        return "seen";
      },
    });
    const general = scriptedModel([turn(["look", {}], read("a.md")), "It says: the text."]);
    const model = scriptedModel([
      turn(write("a.md", "the text")),
      turn(["task", { agent: "general", task: "Look." }]),
      "Done.",
    ]);
    const { result, events } = await runAgent(
      { architecture: deepAgent(), model, models: { general }, tools: [look], instructions: "Be brief." },
      "The long story",
    );
    expect(result).toMatchObject({ status: "completed", output: "Done.", turns: 5 });
    expect(seen).toEqual(["looked"]);
    expect(general.calls[0]?.messages.map(messageText)).toEqual(["Be brief.", "Look."]);
    expect(general.calls[0]?.tools?.map(({ name }) => name)).toEqual(["look", "ls", "read_file"]);
    expect(resultsIn(general.calls[1])).toEqual(["seen", "the text"]);
    expect(resultsIn(model.calls[2])).toEqual(["It says: the text."]);
    expect(events.some(({ type }) => type === "spawn_start")).toBe(false);
  });

  test("two tasks for the sub-agent general of deepAgent() run in parallel, each with its own compaction", async () => {
    const general = new BarrierModel(["one", "other"], 2);
    const model = scriptedModel([
      turn(["task", { agent: "general", task: "One." }], ["task", { agent: "general", task: "Other." }]),
      "Done.",
    ]);
    const { result } = await runAgent({
      architecture: deepAgent(),
      model,
      models: { general },
      compaction: { strategy: () => slidingWindow({ maxMessages: 10 }) },
    });
    expect(result.status).toBe("completed");
    expect(general.maxInFlight).toBe(2);
    expect(general.calls.map(({ messages }) => messages.length)).toEqual([1, 1]);
  });

  test("J2: deepAgent() summarises the conversation of a general task in its own branch while another task runs", async () => {
    const tasks = ["One.", "Other."].map((task): Call => ["task", { agent: "general", task }]);
    const long = (): ScriptedReply => ({ ...turn(["ls", {}]), text: "word ".repeat(400) });
    const { result } = await runAgent({
      architecture: deepAgent(),
      model: scriptedModel([turn(...tasks), "Done."]),
      models: {
        general: scriptedModel([long(), long(), long(), long(), "one", "other"]),
        summary: scriptedModel(Array.from({ length: 8 }, () => "in short")),
      },
      compaction: {
        strategy: (summarize) => summarization({ summarize, maxTokens: 300, keepRecentTokens: 50 }),
      },
    });
    expect(result).toMatchObject({ status: "completed", output: "Done." });
  });

  test("a task for the sub-agent general that reaches maxTurns gives deepAgent() a tool result with its output so far", async () => {
    const model = scriptedModel([turn(["task", { agent: "general", task: "One." }]), "I did it myself."]);
    const { result } = await runAgent({
      architecture: deepAgent(),
      model,
      models: { general: scriptedModel([turn(["ls", {}]), turn(["ls", {}])]) },
      maxTurns: 2,
    });
    expect(result.output).toBe("I did it myself.");
    expect(resultsIn(model.calls[1])).toEqual([
      "general ended early: max_turns_exceeded. Its output so far: Working.",
    ]);
  });

  test("the task tool of deepAgent() is absent if general is false and there are no sub-agents", async () => {
    const model = scriptedModel(["Done."]);
    await runAgent({ architecture: deepAgent({ general: false }), model });
    expect(model.calls[0]?.tools?.map(({ name }) => name)).not.toContain("task");
  });

  test("C1, C2: cancelling deepAgent() also cancels its sub-agent, and no model is called afterwards", async () => {
    const cancelling = cancellingTool("stop");
    const worker = scriptedModel([turn(["stop", {}])]);
    const reader = new Agent({ name: "reader", model: worker, tools: [cancelling.tool] });
    const model = scriptedModel([turn(["task", { agent: "reads", task: "Read it." }])]);
    const { result, events, conversation } = await runAgent(
      { architecture: deepAgent({ subAgents: { reads: reader } }), model },
      "Go",
      { onStart: cancelling.onStart },
    );
    expect(result.status).toBe("cancelled");
    expect([model.calls.length, worker.calls.length]).toEqual([1, 1]);
    const ends = events.flatMap((event) => (event.type === "task_end" ? [event.data.status] : []));
    expect(ends).toEqual(["cancelled", "cancelled"]);
    expect(JSON.stringify(conversation.at(-2))).toContain("[not executed: enough]");
    expect(JSON.stringify(conversation.at(-1))).toContain("[interrupted: cancelled]");
  });
});
