import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  BudgetExhaustedError,
  CancellationError,
  errorKinds,
  Fault,
  isJson,
  type JsonObject,
  MiddlewareTermination,
  reviveFault,
} from "../../../src/kernel/index.ts";
import { isFaultCode, modelFaultCode } from "../../../src/kernel/base/fault.ts";
import { secondKernel, type Kernel } from "../second-kernel.ts";

function oneOfEach({ Fault: Base, ...kernel }: Kernel | typeof ownKernel): readonly Fault[] {
  return [
    new Base("not_found", "run run_7 is not in the store"),
    new kernel.CancellationError("user stopped"),
    new kernel.BudgetExhaustedError({ dimension: "tokens", limit: 4000, used: 4200 }),
    new kernel.MiddlewareTermination("PII found", { by: "redactor" }),
  ];
}

const ownKernel = { Fault, CancellationError, BudgetExhaustedError, MiddlewareTermination };

type Link = (options: { cause?: unknown }) => unknown;

const details = fc
  .dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
  .map((value) => value as JsonObject)
  .filter(isJson);
const some = fc.record({ details }, { requiredKeys: [] });
const amount = fc.double({ min: 0, max: 1e9, noNaN: true }).map((value) => value + 0);
const plainCode = fc.constantFrom("internal", "not_found", "store_unavailable", "model_rate_limit");
const status = fc.constantFrom("cancelled", "deadline_exceeded");
const dimension = fc.constantFrom("tokens", "costUsd", "turns", "agents");
const by = fc.record({ by: fc.string() }, { requiredKeys: [] });
const link: fc.Arbitrary<Link> = fc.oneof(
  fc.tuple(plainCode, fc.string(), some).map(([code, message, own]): Link => {
    return (cause) => new Fault(code, message, { ...own, ...cause });
  }),
  fc.tuple(fc.string(), fc.record({ status })).map(([reason, own]): Link => {
    return (cause) => new CancellationError(reason, { ...own, ...cause });
  }),
  fc.tuple(fc.record({ dimension, limit: amount, used: amount }), some).map(([exhaustion, own]): Link => {
    return (cause) => new BudgetExhaustedError({ ...exhaustion, ...own, ...cause });
  }),
  fc.tuple(fc.string(), by, some).map(([reason, named, own]): Link => {
    return (cause) => new MiddlewareTermination(reason, { ...named, ...own, ...cause });
  }),
  fc.string().map((message): Link => {
    return (cause) => new TypeError(message, cause);
  }),
  fc.constantFrom<unknown>("a string", 0, false, Symbol("s"), Object.create(null)).map((thrown): Link => {
    return () => thrown;
  }),
);
/** A random chain of faults, other errors and stray values, each caused by the next. */
const chained: fc.Arbitrary<unknown> = fc
  .array(link, { minLength: 1, maxLength: 12 })
  .map((links) =>
    links.reduceRight<unknown>((cause, each) => each(cause === undefined ? {} : { cause }), undefined),
  );

describe("fault codes", () => {
  test.each([
    ["invalid_argument", "never"],
    ["not_json", "never"],
    ["agent_busy", "backoff"],
    ["journal_ambiguous", "never"],
    ["journal_mismatch", "never"],
    ["lease_lost", "never"],
    ["store_unavailable", "backoff"],
    ["store_corrupt", "never"],
    ["internal", "never"],
    ["model_rate_limit", "backoff"],
    ["model_context_overflow", "compact"],
    ["model_auth", "never"],
  ] as const)("the fault code %s has the retry policy %s", (code, retry) => {
    const fault = new Fault(code, "what happened");
    expect(fault).toMatchObject({ code, retry, message: "what happened", name: "Fault", details: undefined });
  });

  test("every kind of model error has a fault code with the retry policy of that kind", () => {
    for (const [kind, { retry }] of Object.entries(errorKinds)) {
      const code = modelFaultCode(kind as keyof typeof errorKinds);
      expect(code).toMatch(/^model_(?!model_)/);
      expect(isFaultCode(code)).toBe(true);
      expect(new Fault(code, "m").retry).toBe(retry);
    }
  });

  test.each([
    "",
    "model_",
    "model_internal",
    "toString",
    "constructor",
    "__proto__",
    "INTERNAL",
    undefined,
    null,
    1,
  ])("the text %s is not a fault code", (code) => {
    expect(isFaultCode(code)).toBe(false);
  });
});

describe("Fault", () => {
  test("the texts in the details of a stored fault are cut to a maximum length like its message", () => {
    const long = "x".repeat(70_000);
    const stored = new Fault("not_found", long, { details: { agent: long, of: [long] } }).toJSON();
    const cut = `${"x".repeat(65_536)} [cut]`;
    expect(stored).toEqual({ code: "not_found", message: cut, details: { agent: cut, of: [cut] } });
  });

  test("a fault keeps its details and its cause", () => {
    const cause = new TypeError("below");
    const fault = new Fault("tool_failed", "search failed", { details: { toolName: "search" }, cause });
    expect(fault.details).toEqual({ toolName: "search" });
    expect(fault.cause).toBe(cause);
    expect(fault.stack).toContain("search failed");
  });

  test("a fault without a cause has no cause property", () => {
    expect(Object.hasOwn(new Fault("internal", "m"), "cause")).toBe(false);
  });

  test.each([
    [{ dimension: "tokens", limit: 4000, used: 4200 }, "Token budget exceeded: 4200 > 4000"],
    [{ dimension: "costUsd", limit: 0.5, used: 0.75 }, "Cost budget exceeded: 0.75 > 0.5"],
    [{ dimension: "turns", limit: 20, used: 21 }, "Turn budget exceeded: 21 > 20"],
    [{ dimension: "agents", limit: 1, used: 2 }, "Agent budget exceeded: 2 > 1"],
  ] as const)("B5: BudgetExhaustedError names dimension, limit and use: %j", (exhaustion, message) => {
    const error = new BudgetExhaustedError({ ...exhaustion, details: { taskId: "t3" } });
    expect(error).toMatchObject({ ...exhaustion, message, code: "budget_exhausted", retry: "never" });
    expect(error.details).toEqual({ taskId: "t3", ...exhaustion });
  });

  test("B5: an exceeded deadline is a CancellationError with the status deadline_exceeded", () => {
    expect(new CancellationError("user stopped")).toMatchObject({
      reason: "user stopped",
      status: "cancelled",
    });
    expect(new CancellationError("deadline exceeded", { status: "deadline_exceeded" })).toMatchObject({
      code: "cancelled",
      message: "deadline exceeded",
      status: "deadline_exceeded",
      details: { reason: "deadline exceeded", status: "deadline_exceeded" },
    });
  });

  test("MiddlewareTermination names the middleware that stops the run and its reason", () => {
    const error = new MiddlewareTermination("PII found", { by: "redactor", details: { field: "email" } });
    expect(error).toMatchObject({ code: "guardrail_tripped", reason: "PII found", by: "redactor" });
    expect(error.details).toEqual({ field: "email", reason: "PII found", by: "redactor" });
    expect(new MiddlewareTermination("PII found").by).toBeUndefined();
  });
});

describe("instanceof on faults", () => {
  const classes = [CancellationError, BudgetExhaustedError, MiddlewareTermination] as const;

  test("every subclass of Fault is an instance of Fault and of no other subclass", () => {
    const [plain, ...subclassed] = oneOfEach(ownKernel);
    expect([plain, ...subclassed].every((fault) => fault instanceof Fault && fault instanceof Error)).toBe(
      true,
    );
    const table = subclassed.map((fault) => classes.map((each) => fault instanceof each));
    expect(table).toEqual([
      [true, false, false],
      [false, true, false],
      [false, false, true],
    ]);
    expect(classes.some((each) => plain instanceof each)).toBe(false);
  });

  test("instanceof recognises faults of a duplicate copy of the package, from either copy", async () => {
    const copy = await secondKernel();
    expect(copy.Fault).not.toBe(Fault);
    const pairs = [
      [oneOfEach(copy), ownKernel],
      [oneOfEach(ownKernel), copy],
    ] as const;
    for (const [[plain, cancellation, exhaustion, termination], kernel] of pairs) {
      expect(plain instanceof kernel.Fault).toBe(true);
      expect(plain instanceof kernel.CancellationError).toBe(false);
      expect(cancellation instanceof kernel.CancellationError).toBe(true);
      expect(cancellation instanceof kernel.BudgetExhaustedError).toBe(false);
      expect(exhaustion instanceof kernel.BudgetExhaustedError).toBe(true);
      expect(exhaustion instanceof kernel.MiddlewareTermination).toBe(false);
      expect(termination instanceof kernel.MiddlewareTermination).toBe(true);
      expect(kernel.Fault.from(termination)).toBe(termination);
    }
  });

  test("instanceof recognises a fault of another realm by its brand and code", () => {
    const foreign: unknown = runInNewContext(
      `Object.assign(new Error("elsewhere"), { [Symbol.for("reeve.fault")]: true, code: "cancelled" })`,
    );
    expect(foreign instanceof Error).toBe(false);
    expect(foreign instanceof Fault).toBe(true);
    expect(foreign instanceof CancellationError).toBe(true);
    expect(foreign instanceof BudgetExhaustedError).toBe(false);
  });

  test.each([
    undefined,
    null,
    "cancelled",
    { code: "cancelled" },
    new Error("cancelled"),
    Object.assign(new Error("m"), { code: "cancelled" }),
    { [Symbol.for("reeve.fault")]: true, code: "no such code" },
  ])("instanceof rejects a value without the brand or a known code: case %#", (value) => {
    expect(value instanceof Fault).toBe(false);
    expect(value instanceof CancellationError).toBe(false);
    expect(Fault.is(value)).toBe(false);
  });

  test("faults that the library throws are not instances of a user's subclass of Fault", () => {
    class QuotaFault extends Fault {}
    const own = new QuotaFault("unsupported", "no quota");
    expect(own instanceof QuotaFault && own instanceof Fault).toBe(true);
    expect(own.name).toBe("QuotaFault");
    for (const other of oneOfEach(ownKernel)) expect(other instanceof QuotaFault).toBe(false);
    for (const each of classes) expect((own as unknown) instanceof each).toBe(false);
  });

  test("cancellations that the library throws are not instances of a user's subclass of CancellationError", () => {
    class UserLeft extends CancellationError {}
    const own: unknown = new UserLeft("tab closed");
    expect(own instanceof UserLeft && own instanceof CancellationError && own instanceof Fault).toBe(true);
    const other: unknown = new CancellationError("user stopped");
    expect(other instanceof UserLeft).toBe(false);
  });
});

describe("a stored fault", () => {
  test("a stored fault consists of code, message, details and causes", () => {
    const cause = new Fault("store_unavailable", "locked", { cause: new TypeError("EBUSY") });
    const fault = new Fault("tool_failed", "search failed", { details: { toolName: "search" }, cause });
    expect(JSON.parse(JSON.stringify(fault))).toEqual({
      code: "tool_failed",
      message: "search failed",
      details: { toolName: "search" },
      cause: {
        code: "store_unavailable",
        message: "locked",
        cause: { code: "internal", message: "EBUSY", details: { name: "TypeError" } },
      },
    });
  });

  test("J10: any fault is stored as JSON and revived to an equal fault", () => {
    fc.assert(
      fc.property(chained, (thrown) => {
        const failure = Fault.from(thrown).toJSON();
        expect(isJson(failure)).toBe(true);
        const stored = JSON.parse(JSON.stringify(failure)) as typeof failure;
        expect(stored).toEqual(failure);
        const revived = reviveFault(stored);
        expect(revived.toJSON()).toEqual(failure);
      }),
    );
  });

  test("a stored fault is revived as an instance of its class", () => {
    const classes = [Fault, CancellationError, BudgetExhaustedError, MiddlewareTermination];
    for (const [index, fault] of oneOfEach(ownKernel).entries()) {
      const revived = reviveFault(fault.toJSON());
      expect(Object.getPrototypeOf(revived)).toBe(classes[index]?.prototype);
      expect(revived.message).toBe(fault.message);
      expect(Object.entries(revived)).toEqual(Object.entries(fault));
    }
  });

  test("a stored MiddlewareTermination is revived whatever the names of its details are", () => {
    const failure = new MiddlewareTermination("PII found", { details: { by: 5 } }).toJSON();
    expect(reviveFault(failure).toJSON()).toEqual(failure);
  });

  test("storing a fault with a circle of causes cuts the circle", () => {
    const first = new Error("first");
    const second = new Fault("internal", "second", { cause: first });
    first.cause = second;
    const failure = second.toJSON();
    expect(depthOf(failure)).toBe(8);
    expect(reviveFault(failure).toJSON()).toEqual(failure);
    expect(depthOf(reviveFault(failure).toJSON())).toBe(8);
  });

  test("storing a fault that is its own cause cuts the circle", () => {
    const fault = new Fault("internal", "m");
    fault.cause = fault;
    expect(depthOf(fault.toJSON())).toBe(8);
  });
});

describe("Fault.from()", () => {
  test("Fault.from() returns a fault unchanged", () => {
    for (const fault of oneOfEach(ownKernel)) expect(Fault.from(fault)).toBe(fault);
  });

  test("Fault.from() turns any other value into an internal fault with that value as its cause", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (thrown) => {
        const fault = Fault.from(thrown);
        expect(fault).toMatchObject({ code: "internal", message: expect.any(String) });
        expect(fault.cause).toBe(thrown);
        expect(isJson(fault.toJSON())).toBe(true);
      }),
    );
  });

  test.each([
    [new TypeError("boom"), "boom"],
    [new TypeError(""), "TypeError"],
    ["a string", "a string"],
    [undefined, "undefined"],
    [null, "null"],
    [Symbol("s"), "Symbol(s)"],
    [Object.create(null), "an object"],
  ])("Fault.from() describes the thrown value in its message: case %#", (thrown, message) => {
    expect(Fault.from(thrown).message).toBe(message);
  });

  test.each(hostile())("Fault.from() never throws: %s", (_name, thrown) => {
    const fault = Fault.from(thrown);
    expect(fault.code).toBe("internal");
    expect(typeof fault.message).toBe("string");
    expect(isJson(fault.toJSON())).toBe(true);
  });
});

describe("reviveFault()", () => {
  test("reviveFault() keeps a code that this release does not know, with its stored data", () => {
    const stored = { code: "from_the_future", message: "m", details: { a: 1 } } as never;
    expect(reviveFault(stored).toJSON()).toEqual({
      code: "internal",
      message: "m",
      details: { storedCode: "from_the_future", a: 1 },
    });
  });

  test.each([
    { code: "cancelled", message: "m" },
    { code: "cancelled", message: "m", details: { reason: "m", status: "late" } },
    { code: "budget_exhausted", message: "m", details: { dimension: "beer", limit: 1, used: 2 } },
    { code: "budget_exhausted", message: "m", details: { dimension: "tokens", limit: null, used: 2 } },
    { code: "guardrail_tripped", message: "m", details: {} },
  ])("reviveFault() returns an internal fault if the details do not fit the class: %j", (stored) => {
    const revived = reviveFault(stored as never);
    expect(revived.code).toBe("internal");
    expect(revived.message).toBe("m");
    expect(revived.details).toEqual({ storedCode: stored.code, ...stored.details });
  });

  test("reviveFault() keeps the cause of a fault that it cannot read", () => {
    const cause = { code: "store_full", message: "disk full" };
    const revived = reviveFault({ code: "from_the_future", message: "m", cause } as never);
    expect(revived.toJSON().cause).toEqual(cause);
  });

  test("reviveFault() returns a fault for any JSON value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (garbage) => {
        expect(reviveFault(garbage as never) instanceof Fault).toBe(true);
      }),
    );
  });

  test("reviveFault() returns a fault for a stored failure with a field of the wrong type", () => {
    const field = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constant(null));
    const code = fc.constantFrom("cancelled", "budget_exhausted", "guardrail_tripped", "internal", "unknown");
    const failure = fc.record({ code, message: field, details: field, cause: field }, { requiredKeys: [] });
    fc.assert(
      fc.property(failure, (garbage) => {
        const revived = reviveFault(garbage as never);
        expect(revived instanceof Fault).toBe(true);
        expect(isJson(revived.toJSON())).toBe(true);
      }),
    );
  });

  test("reviveFault() cuts a chain of causes that is longer than any stored chain", () => {
    let stored: object = { code: "internal", message: "m" };
    for (let depth = 0; depth < 100_000; depth++) stored = { code: "internal", message: "m", cause: stored };
    expect(depthOf(reviveFault(stored as never).toJSON())).toBe(8);
  });
});

function depthOf({ cause }: { readonly cause?: object }): number {
  return cause === undefined ? 0 : 1 + depthOf(cause);
}

/** Thrown values whose properties or conversions throw when they are read. */
function hostile(): [string, unknown][] {
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  const throws = { get: refuse, has: refuse, getPrototypeOf: refuse, ownKeys: refuse };
  return [
    ["a revoked proxy", revoked],
    ["a proxy that refuses everything", new Proxy({}, throws)],
    ["an error behind a proxy that refuses everything", new Proxy(new Error("m"), throws)],
    ["an error whose message is a symbol", Object.assign(new Error("m"), { message: Symbol("m") })],
    ["an error whose message is an object", Object.assign(new Error("m"), { message: Object.create(null) })],
    ["an error whose name is a bigint", Object.assign(new Error("m"), { name: 1n })],
    [
      "an error whose message is a getter that throws",
      Object.defineProperty(new Error("m"), "message", { get: refuse }),
    ],
    [
      "an error whose cause is a getter that throws",
      Object.defineProperty(new Error("m"), "cause", { get: refuse }),
    ],
    [
      "a branded value whose code is a getter that throws",
      {
        [Symbol.for("reeve.fault")]: true,
        get code(): string {
          return refuse();
        },
      },
    ],
    ["an object whose toString throws", { toString: refuse }],
    ["an object whose toString is not a function", { toString: 1, valueOf: 1 }],
    ["a function", refuse],
  ];
}

function refuse(): never {
  throw new TypeError("refused");
}
