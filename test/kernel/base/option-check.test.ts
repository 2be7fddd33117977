import { describe, expect, test } from "vitest";
import {
  checkChoice,
  checkMethods,
  checkOptionalMethods,
  checkOptions,
  checkSpelling,
  nearestName,
  optionNames,
} from "../../../src/kernel/index.ts";

interface Limits {
  readonly maxAgents?: number;
  readonly timeoutMs?: number;
}

const names = optionNames<Limits>({ maxAgents: true, timeoutMs: true });

class Tracker {
  readonly #spent = 0;
  get spent(): number {
    return this.#spent;
  }
}

describe("checkOptions()", () => {
  test.each([
    ["snake case", { max_agents: 1 }, 'unknown option "max_agents" of limits: use "maxAgents"'],
    ["another letter case", { MAXAGENTS: 1 }, 'unknown option "MAXAGENTS" of limits: use "maxAgents"'],
    ["a missing letter", { maxAgent: 1 }, 'unknown option "maxAgent" of limits: use "maxAgents"'],
    ["a missing unit", { timeout: 1 }, 'unknown option "timeout" of limits: use "timeoutMs"'],
    ["a value of undefined", { maxAgent: undefined }, 'unknown option "maxAgent" of limits: use "maxAgents"'],
    [
      "no similar name",
      { colour: 1 },
      'unknown option "colour" of limits: expected one of maxAgents, timeoutMs',
    ],
  ])("checkOptions() refuses an unknown option in %s and names the nearest", (_what, options, message) => {
    expect(() => checkOptions("limits", options, names)).toThrow(
      expect.objectContaining({ code: "invalid_argument", message }),
    );
  });

  test.each([
    ["undefined", undefined, "undefined"],
    ["null", null, "null"],
    ["a text", "scout", '"scout"'],
    ["an array", [], "an array"],
    ["a function", () => 1, "a function"],
    ["an instance without options", new Tracker(), "an instance of Tracker"],
    ["a map", new Map([["maxAgents", 1]]), "an instance of Map"],
  ])("checkOptions() refuses %s in place of options", (_what, options, kind) => {
    expect(() => checkOptions("limits", options, names)).toThrow(
      `invalid options of limits: expected an object with some of maxAgents, timeoutMs, not ${kind}`,
    );
  });

  test("checkOptions() accepts known options, none at all, and an instance that has them", () => {
    class Chosen {
      readonly maxAgents = 3;
    }
    for (const options of [{}, { maxAgents: 1, timeoutMs: undefined }, Object.create(null), new Chosen()])
      expect(() => checkOptions("limits", options, names)).not.toThrow();
  });
});

describe("the other checks of options", () => {
  test("nearestName() finds no name for a text that resembles none", () => {
    expect(nearestName("colour", ["maxAgents", "timeoutMs"])).toBeUndefined();
    expect(nearestName("", ["a"])).toBeUndefined();
    expect(nearestName("maxAgents".repeat(1_000), ["maxAgents"])).toBeUndefined();
  });

  test("checkChoice() refuses a value in another letter case and names the right one", () => {
    expect(() => checkChoice("agent scout", "inbox", "Each", ["each", "together"])).toThrow(
      'invalid inbox "Each" of agent scout: expected one of each, together; use "each"',
    );
    expect(() => checkChoice("agent scout", "inbox", undefined, ["each"])).not.toThrow();
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
