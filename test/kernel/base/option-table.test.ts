import { describe, expect, test } from "vitest";
import {
  checkMethods,
  checkOptionalMethods,
  checkSpelling,
  is,
  nearestName,
  optionTable,
  type OptionKind,
  type OptionKinds,
} from "../../../src/kernel/index.ts";

interface Limits {
  readonly maxAgents?: number;
  readonly timeoutMs?: number | null;
  readonly onFull?: "refuse" | "wait";
}

const limits = optionTable({
  maxAgents: is.integer({ from: 1, default: 50 }),
  timeoutMs: is.number({ above: 0, or: [null, "no limit"] }),
  onFull: is.choice(["refuse", "wait"]),
} satisfies OptionKinds<Limits>);

function refusal(message: string): unknown {
  return expect.objectContaining({ code: "invalid_argument", message });
}

class Tracker {
  readonly #spent = 0;
  get spent(): number {
    return this.#spent;
  }
}

describe("an option table", () => {
  test.each([
    ["in snake case", { max_agents: 1 }, 'use "maxAgents"'],
    ["in another letter case", { MAXAGENTS: 1 }, 'use "maxAgents"'],
    ["with a missing letter", { maxAgent: 1 }, 'use "maxAgents"'],
    ["without its unit", { timeout: 1 }, 'use "timeoutMs"'],
    ["with the value undefined", { maxAgent: undefined }, 'use "maxAgents"'],
    ["without a similar one", { colour: 1 }, "expected one of maxAgents, timeoutMs, onFull"],
    ["of every object", { constructor: 1 }, "expected one of maxAgents, timeoutMs, onFull"],
    ["of another library", { thread_id: "t" }, "use `sessionId` of invoke()"],
  ])("an option table refuses an unknown name %s and says what to use", (_what, options, fix) => {
    const [name] = Object.keys(options);
    expect(() => limits.read("limits", options)).toThrow(
      refusal(`unknown option "${name}" of limits: ${fix}`),
    );
  });

  test("an option table names the option to use in place of that of another library", () => {
    const table = optionTable({ sessionId: is.text(), execute: is.callback() });
    expect(() => table.read("it", { threadId: "t" })).toThrow('of it: use "sessionId"');
    expect(() => table.read("it", { handler: () => 1 })).toThrow('of it: use "execute"');
  });

  test("an option table says where an option belongs that the table does not have", () => {
    const table = optionTable({ name: is.text() }, (name) =>
      name === "input" ? "pass it to invoke()" : undefined,
    );
    expect(() => table.read("it", { input: 1 })).toThrow('unknown option "input" of it: pass it to invoke()');
    expect(() => table.read("it", { nam: 1 })).toThrow('use "name"');
  });

  test.each([
    ["undefined", undefined, "undefined"],
    ["null", null, "null"],
    ["a text", "scout", '"scout"'],
    ["an array", [], "an array"],
    ["a function", () => 1, "a function"],
    ["an instance without options", new Tracker(), "an instance of Tracker"],
    ["a map", new Map([["maxAgents", 1]]), "an instance of Map"],
  ])("an option table refuses %s in place of options", (_what, options, kind) => {
    expect(() => limits.read("limits", options)).toThrow(
      refusal(
        `invalid options of limits: expected an object with some of maxAgents, timeoutMs, onFull, not ${kind}`,
      ),
    );
  });

  test("an option table returns the options with their defaults", () => {
    class Chosen {
      readonly maxAgents = 3;
    }
    const none: Limits = {};
    expect(limits.read("limits", none).maxAgents.toFixed()).toBe("50");
    expect(limits.read("limits", { maxAgents: undefined, timeoutMs: null })).toEqual({
      maxAgents: 50,
      timeoutMs: null,
    });
    expect(limits.read("limits", Object.create(null))).toEqual({ maxAgents: 50 });
    expect(limits.read("limits", new Chosen())).toEqual({ maxAgents: 3 });
  });

  test("an option table reads getters of a class, hidden properties and a proxy, and each only once", () => {
    let reads = 0;
    class Getters {
      get maxAgents(): number {
        reads++;
        return 3;
      }
    }
    const hidden: Limits = Object.defineProperty({}, "onFull", { value: "wait" });
    const proxy: Limits = new Proxy({}, { get: (_target, name) => (name === "timeoutMs" ? 7 : undefined) });
    expect(limits.read("limits", new Getters())).toEqual({ maxAgents: 3 });
    expect(reads).toBe(1);
    expect(limits.read("limits", hidden)).toEqual({ maxAgents: 50, onFull: "wait" });
    expect(limits.read("limits", proxy)).toEqual({ maxAgents: 50, timeoutMs: 7 });
  });

  test("an option table checks a getter of a class like any other value", () => {
    class Wrong {
      readonly onFull = "wait";
      get maxAgents(): number {
        return 0;
      }
    }
    expect(() => limits.read("limits", new Wrong())).toThrow(
      refusal("invalid maxAgents 0 of limits: expected an integer from 1"),
    );
  });

  test("an option table refuses null for a required list and accepts null for an optional list", () => {
    const table = optionTable({ steps: is.list({ required: true }), tags: is.list() });
    expect(() => table.read("it", { steps: null })).toThrow(
      refusal("invalid steps null of it: expected an array"),
    );
    expect(table.read("it", { steps: [], tags: null })).toEqual({ steps: [], tags: null });
  });

  test("an option table returns the same object if no option has a default", () => {
    const options = { name: "x" };
    expect(optionTable({ name: is.text() }).read("it", options)).toBe(options);
  });
});

const text = { empty: false, required: true } as const;

describe("a kind of option in an option table", () => {
  test.each<[OptionKind, unknown, string]>([
    [is.integer({ from: 1 }), 0, "invalid x 0 of it: expected an integer from 1"],
    [is.integer({}), 1.5, "invalid x 1.5 of it: expected an integer"],
    [
      is.integer({ from: 1, hint: "the root counts" }),
      "5",
      'invalid x "5" of it: expected an integer from 1; the root counts',
    ],
    [
      is.integer({ from: 1, or: [Infinity, "no end"] }),
      Number.NaN,
      "invalid x NaN of it: expected an integer from 1, or Infinity for no end",
    ],
    [is.number({ from: 0, to: 1 }), 1.1, "invalid x 1.1 of it: expected a number from 0 to 1"],
    [is.number({ above: 0, to: 1 }), 0, "invalid x 0 of it: expected a number above 0 and at most 1"],
    [is.number({ from: 0, below: 9 }), 9, "invalid x 9 of it: expected a number from 0 and below 9"],
    [
      is.number({ from: 0, finite: true }),
      Infinity,
      "invalid x Infinity of it: expected a finite number from 0",
    ],
    [is.number({ from: 0 }), Number.NaN, "invalid x NaN of it: expected a number from 0"],
    [
      is.number({ from: 0, or: [null, "no limit"] }),
      {},
      "invalid x of it: expected a number from 0, or null for no limit, not an object",
    ],
    [is.boolean(), "no", 'invalid x "no" of it: expected true or false'],
    [is.text(), 5, "invalid x 5 of it: expected a text"],
    [is.text(text), " ", 'invalid x " " of it: expected a text that is not empty'],
    [is.text(text), undefined, "invalid x undefined of it: expected a text that is not empty"],
    [is.callback(), {}, "invalid x of it: expected a function, not an object"],
    [
      is.choice(["each", "together"]),
      "Each",
      'invalid x "Each" of it: expected one of each, together; use "each"',
    ],
    [is.list({ hint: "use x: [y]" }), {}, "invalid x of it: expected an array, not an object; use x: [y]"],
    [is.list(), Promise.resolve([]), "invalid x of it: expected an array, not a promise; await the promise"],
    [is.list({ of: is.text() }), ["a", 1], "invalid x 1 of it: expected a text"],
    [
      is.named("words", "{ a: [] }"),
      [],
      "invalid x of it: expected an object with the words by name, not an array; use { a: [] }",
    ],
    [is.withMethods(["run"]), {}, "invalid x of it: it has no method run; expected an object with run"],
    [is.options(limits), { maxAgents: 0 }, "invalid maxAgents 0 of x of it: expected an integer from 1"],
  ])("a kind of option in an option table refuses a wrong value (%#)", (kind, value, message) => {
    expect(() => optionTable({ x: kind }).read("it", { x: value })).toThrow(refusal(message));
  });

  test.each<[OptionKind, readonly unknown[]]>([
    [is.integer({ from: 1, or: [Infinity, "no end"] }), [1, Infinity, undefined]],
    [is.number({ from: 0 }), [0, 1.5, Infinity]],
    [is.text(), ["", "a"]],
    [is.list({ of: is.text() }), [[], ["a"], null]],
    [is.withMethods(["run"]), [{ run: () => 1 }, null]],
    [is.any, [null, {}, () => 1]],
  ])("a kind of option in an option table accepts the values that it describes (%#)", (kind, values) => {
    for (const x of values) expect(optionTable({ x: kind }).read("it", { x })).toEqual({ x });
  });
});

describe("the checks of methods of an object", () => {
  test("nearestName() finds no name for a text that resembles none", () => {
    expect(nearestName("colour", ["maxAgents", "timeoutMs"])).toBeUndefined();
    expect(nearestName("", ["a"])).toBeUndefined();
    expect(nearestName("maxAgents".repeat(1_000), ["maxAgents"])).toBeUndefined();
  });

  test("checkMethods() names the method that an object lacks", () => {
    expect(() => checkMethods("memory of agent scout", { recall: () => 1 }, ["recall", "remember"])).toThrow(
      "invalid memory of agent scout: it has no method remember; expected an object with recall, remember",
    );
  });

  test("checkSpelling() finds a method in another spelling, also one of a class", () => {
    class Snake {
      before_call(): void {}
    }
    for (const value of [new Snake(), { before_call: () => 1, beforeCall: () => 1 }])
      expect(() => checkSpelling("guardrail g", value, ["beforeCall"])).toThrow(
        "invalid guardrail g: unknown method before_call; use beforeCall",
      );
  });

  test("checkOptionalMethods() refuses an object without any of the methods", () => {
    expect(() => checkOptionalMethods("guardrail g", { check: () => 1 }, ["onInput", "onOutput"])).toThrow(
      "invalid guardrail g: it has none of the methods onInput, onOutput",
    );
  });
});
