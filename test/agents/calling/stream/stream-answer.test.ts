import { describe, expect, test } from "vitest";
import { z } from "zod";
import { debate, router, swarm } from "../../../../src/agents/architectures/index.ts";
import {
  Agent,
  openRuntime,
  OrchestratorAgent,
  Sequential,
  type AgentStream,
} from "../../../../src/entries/index.ts";
import { scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { looks, scout } from "../../scout.ts";

async function all<Value>(values: AsyncIterable<Value>): Promise<Value[]> {
  const found: Value[] = [];
  for await (const value of values) found.push(value);
  return found;
}

function speaker(name: string, script: readonly ScriptStep[]): Agent {
  return new Agent({ name, description: `The ${name}.`, model: scriptedModel(script) });
}

/** The text of a stream, and the output of its run. */
async function read(stream: AgentStream<{ readonly output: unknown }>) {
  const text = (await all(stream.text())).join("");
  return { text, output: (await stream.result()).output };
}

describe("stream.text()", () => {
  test("stream.text() yields the text of the answer piece by piece as the model writes it", async () => {
    const agent = speaker("guide", [{ deltas: ["Take ", "the ", "pass."] }]);
    expect(await all(agent.stream("Which way?").text())).toEqual(["Take ", "the ", "pass."]);
  });

  test("stream.text() leaves out reasoning and tool input, and separates the texts of two turns with an empty line", async () => {
    const { agent } = scout([
      { ...looks, text: "I will look." },
      { reasoning: "Hm.", text: "It rains." },
    ]);
    expect(await read(agent.stream("Weather?"))).toEqual({
      text: "I will look.\n\nIt rains.",
      output: "It rains.",
    });
  });

  test("stream.text() yields only the orchestrator's words while its sub-agents stream", async () => {
    const lead = new OrchestratorAgent({
      name: "lead",
      model: scriptedModel([
        {
          toolCalls: ["one", "two"].map((name) => ({ name: `handoff_${name}`, input: { task: "Say it." } })),
        },
        { deltas: ["Both ", "agree."] },
      ]),
      subAgents: [speaker("one", [{ deltas: ["a", "b"] }]), speaker("two", [{ deltas: ["c", "d"] }])],
    });
    expect(await read(lead.stream("Ask them."))).toEqual({ text: "Both agree.", output: "Both agree." });
  });

  test("stream.text() yields the specialist's words and not the routing of a router", async () => {
    const routes = {
      billing: speaker("clerk", [{ deltas: ["It was ", "7."] }]),
      travel: speaker("guide", []),
    };
    const desk = new Agent({
      name: "desk",
      model: scriptedModel(["route: billing\nconfidence: 0.9"]),
      architecture: router({ routes }),
    });
    expect(await all(desk.stream("What did I pay?").text())).toEqual(["It was ", "7."]);
  });

  test("stream.text() yields the words of the specialist of a nested router", async () => {
    const inner = new Agent({
      name: "inner",
      description: "Routes again.",
      model: scriptedModel(["route: b"]),
      architecture: router({ routes: { a: speaker("a", []), b: speaker("b", ["deep"]) } }),
    });
    const outer = new Agent({
      name: "outer",
      model: scriptedModel(["route: inner"]),
      architecture: router({ routes: { inner, other: speaker("other", []) } }),
    });
    expect(await read(outer.stream("?"))).toEqual({ text: "deep", output: "deep" });
  });

  test("stream.text() yields the words of the peer to which a swarm handed the conversation over", async () => {
    const handoff = { toolCalls: [{ name: "handoff", input: { target: "expert", message: "Help." } }] };
    const team = new Agent({
      name: "team",
      architecture: swarm({
        peers: { front: speaker("front", [handoff]), expert: speaker("expert", [{ deltas: ["4", "2"] }]) },
      }),
    });
    expect(await all(team.stream("?").text())).toEqual(["4", "2"]);
  });

  test("stream.text() yields only the last step's words of a Sequential", async () => {
    const flow = new Sequential({
      name: "flow",
      steps: [speaker("draft", ["rough"]), speaker("edit", ["fine"])],
    });
    expect(await read(flow.stream("Write."))).toEqual({ text: "fine", output: "fine" });
  });

  test("stream.text() yields at its end an answer that no agent of the conversation streamed", async () => {
    const debaters = { pro: speaker("pro", ["yes", "yes"]), con: speaker("con", ["no", "no"]) };
    const judge = new Agent({
      name: "judge",
      architecture: debate({ debaters, rounds: 1 }),
    });
    const { text, output } = await read(judge.stream("Is it?"));
    expect(output).toBe("yes");
    expect(text).toBe(output);
  });

  test("stream.text() restarts the message on message_reset, after an empty line", async () => {
    const script = [{ deltas: ["Take the r"], cut: true }, { deltas: ["Take the ", "pass."] }];
    await using runtime = disposable(await openRuntime({ retry: { baseDelayMs: 0 } }));
    const text = await all(speaker("guide", script).stream("Which way?", { runtime: runtime.it }).text());
    expect(text.join("")).toBe("Take the r\n\nTake the pass.");
  });

  test("stream.text() passes the text that stays valid to onReset on message_reset", async () => {
    await using runtime = disposable(await openRuntime({ retry: { baseDelayMs: 0 } }));
    const { agent } = scout([
      { ...looks, text: "I look." },
      { deltas: ["It sn"], cut: true },
      { deltas: ["It ", "rains."] },
    ]);
    let shown = "";
    const onReset = (valid: string): void => {
      shown = valid;
    };
    for await (const piece of agent.stream("Weather?", { runtime: runtime.it }).text({ onReset }))
      shown += piece;
    expect(shown).toBe("I look.\n\nIt rains.");
  });

  test("stream.text() yields the whole answer to a reader that starts after the run has ended", async () => {
    const stream = speaker("guide", [{ deltas: ["Take ", "the pass."] }]).stream("Which way?");
    await stream.result();
    expect(await all(stream.text())).toEqual(["Take the pass."]);
  });

  test("stream.text() refuses an unknown option and names the nearest one", async () => {
    const options = { onRestart: () => undefined } as object;
    await expect(all(speaker("guide", []).stream("?").text(options))).rejects.toThrow(/onRestart.*onReset/su);
  });
});

describe("stream.partialObject()", () => {
  const trip = z.object({ town: z.string(), days: z.number(), stops: z.array(z.string()) });

  test("stream.partialObject() yields the value as it grows, and its last value equals the output", async () => {
    const deltas = ['{"town":"To', 'urs","da', 'ys":1', '2,"stops":["A', 'mboise"', "]}"];
    const stream = speaker("planner", [{ deltas }]).stream("Plan.", { output: trip });
    const values = await all(stream.partialObject());
    expect(values).toEqual([
      { town: "To" },
      { town: "Tours" },
      { town: "Tours", days: 12, stops: ["A"] },
      { town: "Tours", days: 12, stops: ["Amboise"] },
      { town: "Tours", days: 12, stops: ["Amboise"] },
    ]);
    expect((await stream.result()).output).toEqual(values.at(-1));
  });

  test("stream.partialObject() starts again after message_reset", async () => {
    await using runtime = disposable(await openRuntime({ retry: { baseDelayMs: 0 } }));
    const script = [{ deltas: ['{"town":"Par'], cut: true }, '{"town":"Tours","days":1,"stops":[]}'];
    const stream = speaker("planner", script).stream("Plan.", { output: trip, runtime: runtime.it });
    expect(await all(stream.partialObject())).toEqual([
      { town: "Par" },
      { town: "Tours", days: 1, stops: [] },
    ]);
  });

  test("stream.partialObject() fails for a stream without a schema and names the option", async () => {
    const stream = speaker("guide", []).stream("?") as unknown as AgentStream<unknown, object>;
    await expect(all(stream.partialObject())).rejects.toThrow("pass the option `output` to stream()");
  });
});

function disposable<Closed extends { close(): Promise<void> }>(it: Closed) {
  return { it, [Symbol.asyncDispose]: () => it.close() };
}
