import { describe, expect, test } from "vitest";
import { END, START, Graph, type NodeContext, type NodeFunction } from "../../../../src/entries/index.ts";
import { type JsonValue } from "../../../../src/kernel/index.ts";
import { diamond, mark, marks, meeting, openBench, ran, speaker, toldBy } from "./flow-run.ts";

describe("nodes of a graph", () => {
  test("agents and functions of a graph run one after another along the edges", async () => {
    const writer = speaker("writer", "A poem.");
    const flow = new Graph({
      name: "desk",
      nodes: {
        ask: (_input, { text }) => `Write about ${text}.`,
        write: writer.agent,
        shout: (_input, { text }) => text.toUpperCase(),
      },
      edges: [
        [START, "ask"],
        ["ask", "write"],
        ["write", "shout"],
        ["shout", END],
      ],
    });
    const { result, events } = await ran(flow, "rain");
    expect(result).toMatchObject({
      status: "completed",
      output: "A POEM.",
      turns: 1,
      metadata: { visits: { ask: 1, write: 1, shout: 1 } },
    });
    expect(writer.heard()).toEqual(["Write about rain."]);
    expect(toldBy(events)).toEqual([
      "start",
      "ask begins",
      "ask completed",
      "write begins",
      "write completed",
      "shout begins",
      "shout completed",
      "end completed",
    ]);
  });

  test("an agent node of a graph receives several texts joined by blank lines, and a JSON value at END becomes JSON text", async () => {
    const reader = speaker("reader", "read");
    const flow = (nodes: Record<"one" | "two", NodeFunction>): Graph =>
      new Graph({
        name: "w",
        nodes: { ...nodes, read: reader.agent },
        edges: [
          [START, "one"],
          [START, "two"],
          ["one", "read"],
          ["two", "read"],
          ["read", END],
        ],
      });
    await ran(flow({ one: () => "first", two: () => "second" }), "x");
    expect(reader.heard()).toEqual(["first\n\nsecond"]);
    const mixed = new Graph({
      name: "m",
      nodes: { count: () => ({ stars: 3 }) },
      edges: [
        [START, "count"],
        ["count", END],
      ],
    });
    const { result } = await ran(mixed, "x");
    expect(result).toMatchObject({ output: '{"stars":3}', metadata: { value: { stars: 3 } } });
  });

  test("J10: a graph whose node returns a value that is not JSON fails with not_json", async () => {
    const flow = new Graph({
      name: "w",
      nodes: { odd: () => new Map() as unknown as JsonValue },
      edges: [
        [START, "odd"],
        ["odd", END],
      ],
    });
    expect((await ran(flow, "x")).result.error).toMatchObject({ code: "not_json" });
  });

  test("a function node of a graph receives its visit number, an idempotency key, a signal and a context for steps", async () => {
    const keys: string[] = [];
    const flow = new Graph({
      name: "w",
      nodes: {
        work: async (_input, { text, visit, idempotencyKey, signal, ctx }) => {
          keys.push(idempotencyKey);
          expect(signal.aborted).toBe(false);
          return `${text} ${visit} ${await ctx.step("inside", async () => "in")}`;
        },
      },
      edges: [[START, "work"]],
      routers: { work: { to: ["work", END], choose: () => (keys.length < 2 ? "work" : END) } },
    });
    expect((await ran(flow, "x")).result.output).toBe("x 1 in 2 in");
    expect(new Set(keys).size).toBe(2);
  });

  test("images of the user's message reach the agents at START of a graph but not later agents", async () => {
    const [first, second] = [speaker("first", "a cat"), speaker("second", "meow")];
    const flow = new Graph({
      name: "w",
      nodes: { first: first.agent, second: second.agent },
      edges: [
        [START, "first"],
        ["first", "second"],
        ["second", END],
      ],
    });
    const image = {
      type: "image",
      mediaType: "image/png",
      source: { kind: "base64", data: "iVBORw0KGgo=" },
    } as const;
    const runtime = await openBench();
    const asked = [{ type: "text", text: "What is it?" }, image] as unknown as JsonValue;
    await (await runtime.submit(flow, asked)).result();
    expect(first.model.calls[0]?.messages.at(-1)?.content).toContainEqual(image);
    expect(second.model.calls[0]?.messages.at(-1)?.content).not.toContainEqual(image);
    await runtime.close();
  });
});

test("J5: a function node of a graph with retry and timeoutMs is tried again after a failure and after its time", async () => {
  const attempts: number[] = [];
  const flow = new Graph({
    name: "w",
    nodes: {
      fetch: {
        execute: (_input, { attempt, signal }) => {
          attempts.push(attempt);
          if (attempt === 1) throw new Error("no");
          if (attempt === 3) return "got it";
          return new Promise<never>((_, reject) => {
            signal.addEventListener("abort", () => reject(new Error("aborted")));
          });
        },
        retry: { baseDelayMs: 1 },
        timeoutMs: 20,
      },
    },
    edges: [
      [START, "fetch"],
      ["fetch", END],
    ],
  });
  const { result } = await ran(flow, "x");
  expect([result.output, attempts]).toEqual(["got it", [1, 2, 3]]);
});

describe("nodes of a graph with several edges", () => {
  test("all edges of a node of a graph are taken concurrently with the same value", async () => {
    const both = meeting(2);
    const heard: JsonValue[] = [];
    const branch: NodeFunction = async (input) => {
      heard.push(input);
      await both();
      return input;
    };
    const flow = new Graph({
      name: "w",
      nodes: { a: mark("a"), left: branch, right: branch },
      edges: [
        [START, "a"],
        ["a", "left"],
        ["a", "right"],
        ["left", END],
        ["right", END],
      ],
    });
    const { result } = await ran(flow, "x");
    expect(heard).toEqual(["x|a", "x|a"]);
    expect(result).toMatchObject({ output: "x|a\n\nx|a", metadata: { value: ["x|a", "x|a"] } });
  });

  test("the last node of a diamond in a graph runs once with the values of both branches, whichever branch finishes first", async () => {
    const cDone = Promise.withResolvers<void>();
    const nodes = {
      ...diamond.nodes,
      b: async (_input: JsonValue, { text }: NodeContext) => {
        await cDone.promise;
        return `${text}|b`;
      },
      c: (_input: JsonValue, { text }: NodeContext) => {
        cDone.resolve();
        return `${text}|c`;
      },
      d: (input: JsonValue) => input,
    };
    const { result, events } = await ran(new Graph({ ...diamond, name: "w", nodes }), "x");
    expect(result.metadata).toMatchObject({ value: ["x|a|b", "x|a|c"], visits: { d: 1 } });
    const told = toldBy(events);
    expect(told.indexOf("c completed")).toBeLessThan(told.indexOf("b completed"));
    expect(told.indexOf("d begins")).toBeGreaterThan(told.indexOf("b completed"));
  });

  test("a node of a graph with several incoming edges waits for branches of different length", async () => {
    const flow = new Graph({
      name: "w",
      nodes: marks("short", "one", "two", "three", "join"),
      edges: [
        [START, "short"],
        [START, "one"],
        ["one", "two"],
        ["two", "three"],
        ["short", "join"],
        ["three", "join"],
        ["join", END],
      ],
    });
    const { result } = await ran(flow, "x");
    expect(result.output).toBe('["x|short","x|one|two|three"]|join');
  });

  test("a slow branch of a graph delays only the nodes that depend on it", async () => {
    const farDone = Promise.withResolvers<void>();
    const flow = new Graph({
      name: "w",
      nodes: {
        slow: async (input) => {
          await farDone.promise;
          return input;
        },
        near: mark("near"),
        far: (input) => {
          farDone.resolve();
          return input;
        },
      },
      edges: [
        [START, "slow"],
        [START, "near"],
        ["near", "far"],
        ["slow", END],
        ["far", END],
      ],
    });
    expect((await ran(flow, "x")).result.status).toBe("completed");
  });

  test("a graph runs at most maxConcurrency nodes concurrently; the default is 8", async () => {
    const names = Array.from({ length: 10 }, (_, index) => `n${index}`);
    const highWater = async (options: { maxConcurrency?: number }): Promise<number> => {
      let [now, most] = [0, 0];
      const node: NodeFunction = async (input) => {
        most = Math.max(most, ++now);
        await new Promise((resolve) => setImmediate(resolve));
        now--;
        return input;
      };
      const flow = new Graph({
        name: "w",
        nodes: Object.fromEntries(names.map((name) => [name, node])),
        edges: names.flatMap((name) => [[START, name] as const, [name, END] as const]),
        ...options,
      });
      expect((await ran(flow, "x")).result.status).toBe("completed");
      return most;
    };
    expect(await highWater({ maxConcurrency: 1 })).toBe(1);
    expect(await highWater({ maxConcurrency: 3 })).toBe(3);
    expect(await highWater({})).toBe(8);
  });
});

describe("routers of a graph", () => {
  const triage = (choose: (text: string) => "bill" | "tech" | typeof END | readonly ("bill" | "tech")[]) =>
    new Graph({
      name: "w",
      nodes: marks("classify", "bill", "tech", "close"),
      edges: [
        [START, "classify"],
        ["bill", "close"],
        ["tech", "close"],
        ["close", END],
      ],
      routers: { classify: { to: ["bill", "tech", END], choose: (_value, text) => choose(text) } },
    });

  test("a router of a graph selects one target: other targets never run, and a later node with several edges receives one value", async () => {
    const flow = triage((text) => (text.includes("money") ? "bill" : "tech"));
    const money = await ran(flow, "money");
    expect(money.result.output).toBe("money|classify|bill|close");
    expect(toldBy(money.events).some((line) => line.startsWith("tech"))).toBe(false);
    expect((await ran(flow, "screen")).result.output).toBe("screen|classify|tech|close");
  });

  test("a router of a graph may select several targets, whose values are joined in edge order", async () => {
    const { result } = await ran(
      triage(() => ["tech", "bill"]),
      "x",
    );
    expect(result.output).toBe('["x|classify|bill","x|classify|tech"]|close');
  });

  test("a graph ends with the node's value when the router selects END", async () => {
    expect(
      (
        await ran(
          triage(() => END),
          "x",
        )
      ).result.output,
    ).toBe("x|classify");
  });

  test("a router of a graph may decide at START next to edges, and may be asynchronous", async () => {
    const flow = new Graph({
      name: "w",
      nodes: marks("always", "left", "right"),
      edges: [
        [START, "always"],
        ["always", END],
        ["left", END],
        ["right", END],
      ],
      routers: {
        [START]: { to: ["left", "right"], choose: async (value) => (value === "l" ? "left" : "right") },
      },
    });
    expect((await ran(flow, "l")).result.metadata).toMatchObject({ value: ["l|always", "l|left"] });
    expect((await ran(flow, "r")).result.metadata).toMatchObject({ visits: { left: 0, right: 1 } });
  });

  test.for([
    { choice: "nowhere", says: "the router at classify chose nowhere: expected one of bill, tech, END" },
    { choice: [], says: "the router at classify chose no node: expected one of bill, tech, END" },
  ])("a graph fails with invalid_argument when its router chooses $choice", async ({ choice, says }) => {
    const { result } = await ran(
      triage(() => choice as unknown as "bill"),
      "x",
    );
    expect(result).toMatchObject({
      status: "failed",
      output: "x|classify",
      error: { code: "invalid_argument", message: says },
    });
  });
});

describe("cycles of a graph", () => {
  const refine = (rounds: number, bounds: { maxSteps?: number; maxVisits?: number } = {}): Graph =>
    new Graph({
      name: "w",
      nodes: marks("a", "b", "judge", "c", "d"),
      edges: [
        [START, "a"],
        ["a", "b"],
        ["b", "judge"],
        ["c", "b"],
        ["d", "b"],
      ],
      routers: {
        judge: {
          to: ["c", "d", END],
          choose: (_value, text) => {
            const round = text.split("|b").length - 1;
            if (round > rounds) return END;
            return round % 2 === 1 ? "c" : "d";
          },
        },
      },
      ...bounds,
    });

  test("a cycle of a graph repeats until its router selects END, and its nodes wait only for edges that can still be taken", async () => {
    const { result, events } = await ran(refine(2), "x");
    expect(result.output).toBe("x|a|b|judge|c|b|judge|d|b|judge");
    expect(toldBy(events).filter((line) => line.endsWith("begins"))).toEqual(
      ["a", "b", "judge", "c", "b", "judge", "d", "b", "judge"].map((name) => `${name} begins`),
    );
    expect(result.metadata).toMatchObject({ visits: { a: 1, b: 3, judge: 3, c: 1, d: 1 } });
  });

  test("a graph stops with max_visits_exceeded and its output so far when a node exceeds maxVisits; the default is 25", async () => {
    const { result, events } = await ran(refine(99, { maxVisits: 3 }), "x");
    expect(result).toMatchObject({
      status: "max_turns",
      interruptionReason: "max_visits_exceeded",
      metadata: { visits: { b: 3 } },
    });
    expect(result.output).toMatch(/\|b\|judge\|[cd]$/);
    expect(events.filter(({ type }) => type === "architecture_event")).toMatchObject([
      { data: { name: "workflow.bound_met", data: { bound: "max_visits", node: "b" } } },
    ]);
    expect(toldBy(events).at(-1)).toBe("end max_turns");
    expect((await ran(refine(99), "x")).result.metadata).toMatchObject({ visits: { b: 25 } });
  });

  test("a graph stops with max_steps_exceeded when its nodes together exceed maxSteps; the default is 100", async () => {
    const { result } = await ran(refine(99, { maxSteps: 4 }), "x");
    expect(result).toMatchObject({ status: "max_turns", interruptionReason: "max_steps_exceeded" });
    const { visits } = result.metadata as { visits: Record<string, number> };
    expect(Object.values(visits).reduce((sum, count) => sum + count)).toBe(4);
    const hundred = await ran(refine(99, { maxVisits: 1_000 }), "x");
    expect(hundred.result.interruptionReason).toBe("max_steps_exceeded");
  });

  test("nodes of a graph's cycle that would wait for each other start in declaration order", async () => {
    const flow = new Graph({
      name: "w",
      nodes: marks("x", "y"),
      edges: [
        [START, "x"],
        [START, "y"],
        ["x", "y"],
      ],
      routers: { y: { to: ["x", END], choose: () => END } },
    });
    expect((await ran(flow, "in")).result.output).toBe('["in","in|x"]|y');
  });
});
