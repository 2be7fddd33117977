import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  conversationOf,
  Fault,
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  formatTopicId,
  parseAgentId,
  parseRunId,
  parseSessionId,
  parseTaskId,
  parseTopicId,
  sessionWithin,
} from "../../../src/kernel/index.ts";

const wordRule = "1 to 128 letters, digits, and _ . : @ -, starting with a letter, digit or _";
const sessionRule = "1 to 256 letters, digits, and _ . : @ / -, starting with a letter, digit or _";

const word = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127}$/);
const agentAddress = fc.oneof(fc.record({ name: word }), fc.record({ name: word, key: word }));
const topicAddress = fc.record({ type: word, source: word });
const parsers: readonly (readonly [string, (text: string) => unknown])[] = [
  ["agent id", parseAgentId],
  ["topic id", parseTopicId],
  ["run id", parseRunId],
  ["task id", parseTaskId],
  ["session id", parseSessionId],
];

describe("an agent id", () => {
  test("an agent id is a name, or a name and a key", () => {
    expect(formatAgentId({ name: "researcher" })).toBe("researcher");
    expect(formatAgentId({ name: "researcher", key: "eu" })).toBe("researcher/eu");
    expect(parseAgentId("researcher")).toEqual({ name: "researcher" });
    expect(parseAgentId("researcher/eu")).toEqual({ name: "researcher", key: "eu" });
  });

  test("an agent id is parsed to the value it was formatted from", () => {
    fc.assert(
      fc.property(agentAddress, (address) => {
        const id = formatAgentId(address);
        expect(parseAgentId(id)).toEqual(address);
        expect(formatAgentId(parseAgentId(id))).toBe(id);
      }),
    );
  });

  test("two different agents never have the same id", () => {
    fc.assert(
      fc.property(agentAddress, agentAddress, (one, other) => {
        const same = one.name === other.name && Reflect.get(one, "key") === Reflect.get(other, "key");
        expect(formatAgentId(one) === formatAgentId(other)).toBe(same);
      }),
    );
  });

  test.each([
    ["", `invalid agent name "": expected ${wordRule}`],
    ["two words", `invalid agent name "two words": expected ${wordRule}`],
    ["-flag", `invalid agent name "-flag": expected ${wordRule}`],
    ["line\n", `invalid agent name "line\\n": expected ${wordRule}`],
    ["é", `invalid agent name "é": expected ${wordRule}`],
    ["/eu", `invalid agent name "": expected ${wordRule}`],
    ["researcher/", `invalid agent key "": expected ${wordRule}`],
    ["researcher/eu/west", `invalid agent key "eu/west": expected ${wordRule}`],
  ])(
    "an invalid agent id is refused with an error that quotes the id and states the rule: %j",
    (text, message) => {
      expect(() => parseAgentId(text)).toThrow(
        expect.objectContaining({ code: "invalid_argument", message }),
      );
    },
  );

  test("an agent name has at most 128 characters", () => {
    expect(formatAgentId({ name: "a".repeat(128) })).toHaveLength(128);
    expect(() => formatAgentId({ name: "a".repeat(129) })).toThrow(/^invalid agent name "a{80}…"/);
  });
});

describe("a topic id", () => {
  test("a topic id is a type and a source", () => {
    expect(formatTopicId({ type: "agent.progress", source: "run_7" })).toBe("agent.progress/run_7");
    expect(parseTopicId("agent.progress/run_7")).toEqual({ type: "agent.progress", source: "run_7" });
  });

  test("a topic id is parsed to the value it was formatted from", () => {
    fc.assert(
      fc.property(topicAddress, (address) => {
        const id = formatTopicId(address);
        expect(parseTopicId(id)).toEqual(address);
        expect(formatTopicId(parseTopicId(id))).toBe(id);
      }),
    );
  });

  test.each([
    ["agent.progress", `invalid topic id "agent.progress": expected a type and a source joined by /`],
    ["", `invalid topic id "": expected a type and a source joined by /`],
    ["/run_7", `invalid topic type "": expected ${wordRule}`],
    ["agent.progress/", `invalid topic source "": expected ${wordRule}`],
    ["a/b/c", `invalid topic source "b/c": expected ${wordRule}`],
  ])(
    "an invalid topic id is refused with an error that quotes the id and states the rule: %j",
    (text, message) => {
      expect(() => parseTopicId(text)).toThrow(
        expect.objectContaining({ code: "invalid_argument", message }),
      );
    },
  );
});

describe("a run id", () => {
  test("a run id is run_ followed by the id it was made from", () => {
    expect(formatRunId("7f3a")).toBe("run_7f3a");
    expect(parseRunId("run_7f3a")).toBe("run_7f3a");
  });

  test("a run id can be made from letters, digits, - and _, which an id source may return", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), (id) => {
        expect(parseRunId(formatRunId(id))).toBe(`run_${id}`);
      }),
    );
  });

  test.each([
    "",
    "run_",
    "7f3a",
    "RUN_7",
    "run_a b",
    "run_a/b",
    "run_7\n",
    ` run_7`,
    `run_${"a".repeat(65)}`,
  ])("an invalid run id is refused with an error that quotes the id and states the rule: %j", (text) => {
    expect(() => parseRunId(text)).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringMatching(/^invalid run id ".*": expected run_ and 1 to 64 letters, digits/),
      }),
    );
  });
});

describe("a task id", () => {
  test("task ids count from t0, the root", () => {
    expect(formatTaskId(0)).toBe("t0");
    expect(formatTaskId(12)).toBe("t12");
  });

  test("a task id of any number is parsed to the value it was formatted from", () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (ordinal) => {
        expect(parseTaskId(formatTaskId(ordinal))).toBe(`t${ordinal}`);
      }),
    );
  });

  test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])(
    "the invalid task number %d is refused",
    (ordinal) => {
      expect(() => formatTaskId(ordinal)).toThrow(
        expect.objectContaining({
          code: "invalid_argument",
          message: `invalid task number ${ordinal}: expected an integer from 0`,
        }),
      );
    },
  );

  test.each(["", "t", "0", "t01", "t-1", "t1.5", "T0", "t0/1", "t1\n"])(
    "an invalid task id is refused with an error that quotes the id and states the rule: %j",
    (text) => {
      const message = `invalid task id ${JSON.stringify(text)}: expected t and a number, such as t0`;
      expect(() => parseTaskId(text)).toThrow(expect.objectContaining({ code: "invalid_argument", message }));
    },
  );
});

describe("a session id", () => {
  test("a session id is generated with the prefix ses_ or given by the user", () => {
    expect(formatSessionId("7f3a")).toBe("ses_7f3a");
    expect(parseSessionId("telegram:4711/main")).toBe("telegram:4711/main");
  });

  test("a session id is parsed to the value it was formatted from", () => {
    fc.assert(
      fc.property(
        fc
          .stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,255}$/)
          .filter((text) => text.split("/").every((segment) => !/^\.*$/.test(segment))),
        (text) => {
          expect(parseSessionId(text)).toBe(text);
        },
      ),
    );
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), (id) => {
        expect(parseSessionId(formatSessionId(id))).toBe(`ses_${id}`);
      }),
    );
  });

  test.each(["", "/absolute", "../up", "my chat", "chat\n", "ü"])(
    "an invalid session id is refused with an error that quotes the id and states the rule: %j",
    (text) => {
      const message = `invalid session id ${JSON.stringify(text)}: expected ${sessionRule}`;
      expect(() => parseSessionId(text)).toThrow(
        expect.objectContaining({ code: "invalid_argument", message }),
      );
    },
  );

  test("a session id has at most 256 characters", () => {
    expect(parseSessionId("a".repeat(256))).toHaveLength(256);
    expect(() => parseSessionId("a".repeat(257))).toThrow(/^invalid session id "a{80}…"/);
  });

  test("the id of a session within a conversation names that conversation and is refused as user input", () => {
    const inner = sessionWithin(parseSessionId("hotel/desk"), "clerk");
    expect(conversationOf(inner)).toBe("hotel/desk");
    expect(conversationOf(parseSessionId("hotel/desk"))).toBe("hotel/desk");
    expect(() => parseSessionId(inner)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });
});

describe.each(parsers)("parsing an invalid id: %s", (what, parse) => {
  test("parsing any invalid text as an id is refused with invalid_argument", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 20 }), (text) => {
        const expected = /^[\w.:@/-]+$/.test(text) ? ["accepted", "invalid_argument"] : ["invalid_argument"];
        expect(expected).toContain(outcomeOf(() => parse(text)));
      }),
    );
  });

  test.each([
    [undefined, "undefined"],
    [null, "null"],
    [7, "7"],
    [Symbol("id"), "Symbol(id)"],
    [["t0"], "an array"],
    [{ name: "researcher" }, "an object"],
  ])(
    "parsing a value that is not a string as an id is refused, and the error names the value: %s",
    (value, shown) => {
      expect(() => parse(value as unknown as string)).toThrow(
        expect.objectContaining({
          code: "invalid_argument",
          message: expect.stringMatching(`^invalid ${what} ${escaped(shown)}: expected a string$`),
        }),
      );
    },
  );
});

function outcomeOf(parse: () => unknown): unknown {
  try {
    parse();
    return "accepted";
  } catch (error) {
    return Fault.is(error) ? error.code : error;
  }
}

function escaped(text: string): string {
  return text.replaceAll("(", "\\(").replaceAll(")", "\\)");
}
