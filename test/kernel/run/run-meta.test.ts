import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  CancellationError,
  CancellationToken,
  type Clock,
  formatAgentId,
  formatRunId,
  type IdSource,
  RunMeta,
  type StandaloneOptions,
  Supervision,
} from "../../../src/kernel/index.ts";

interface HandClock extends Clock {
  set(now: number): void;
}

function setup(options: Partial<StandaloneOptions> = {}) {
  const clock = handClock(1000);
  const ids = countingIds();
  return { clock, ids, meta: RunMeta.standalone({ clock, ids, ...options }) };
}

function handClock(start: number): HandClock {
  let current = start;
  return {
    now: () => current,
    set: (now) => void (current = now),
    schedule: () => {
      throw new Error("a badge sets no timer");
    },
  };
}

function countingIds(): IdSource {
  let given = 0;
  return { next: () => `id-${(given += 1)}` };
}

function supervised() {
  const ids = countingIds();
  const supervision = Supervision.root(formatAgentId({ name: "lead" }), { ids });
  return { ids, supervision };
}

describe("a standalone badge", () => {
  test("has a run, a token, a trace and a span of its own, and nothing else", () => {
    const { meta } = setup();
    expect(meta).toMatchObject({
      runId: "run_id-1",
      traceId: "id-2",
      spanId: "id-3",
      supervision: null,
      deadline: null,
      tenantId: null,
    });
    expect(meta.cancellation).toBeInstanceOf(CancellationToken);
    expect(setup().meta.cancellation).not.toBe(meta.cancellation);
  });

  test("keeps what it is given", () => {
    const cancellation = new CancellationToken();
    const { meta } = setup({
      runId: formatRunId("7"),
      cancellation,
      deadline: 5000,
      traceId: "trace",
      tenantId: "acme",
    });
    expect(meta).toMatchObject({ runId: "run_7", deadline: 5000, traceId: "trace", tenantId: "acme" });
    expect(meta.cancellation).toBe(cancellation);
  });

  test("takes its run from the supervision", () => {
    const { ids, supervision } = supervised();
    const { meta } = setup({ ids, supervision });
    expect(meta.runId).toBe(supervision.runId);
    expect(meta.supervision).toBe(supervision);
  });

  test("belongs to the supervision's run also when another is named", () => {
    const { supervision } = supervised();
    const { meta } = setup({ supervision, runId: formatRunId("other") });
    expect(meta.runId).toBe(supervision.runId);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    "refuses the deadline %d",
    (deadline) => {
      const refusal = expect.objectContaining({
        code: "invalid_argument",
        message: `deadline is ${deadline}: it must be epoch milliseconds, or null`,
      });
      expect(() => setup({ deadline })).toThrow(refusal);
    },
  );
});

describe("a child badge", () => {
  test("has the same run, trace and tenant, a new span and a child of the token", () => {
    const { meta } = setup({ tenantId: "acme" });
    const [one, other] = [meta.child(), meta.child()];
    for (const child of [one, other]) {
      expect(child).toMatchObject({ runId: meta.runId, traceId: meta.traceId, tenantId: "acme" });
      expect(child.cancellation).not.toBe(meta.cancellation);
    }
    expect(new Set([meta.spanId, one.spanId, other.spanId, one.child().spanId]).size).toBe(4);
  });

  test("C1: is stopped with its parent, and does not stop it", () => {
    const { meta } = setup();
    const [one, other] = [meta.child(), meta.child()];
    one.cancellation.cancel("this call only");
    expect(() => one.check()).toThrow("this call only");
    expect(() => meta.check()).not.toThrow();
    meta.cancellation.cancel("user stopped");
    expect(() => other.child().check()).toThrow("user stopped");
  });

  test("keeps its parent's place in the org chart, or takes a new one", () => {
    const { ids, supervision } = supervised();
    const { meta } = setup({ ids, supervision });
    const below = supervision.spawnChild({ parentId: supervision.rootId });
    expect(meta.child().supervision).toBe(supervision);
    expect(meta.child({ supervision: below }).supervision).toBe(below);
  });

  test("holds to the earlier of its own deadline and its parent's", () => {
    const deadline = fc.option(fc.integer({ min: 0, max: 1e13 }));
    fc.assert(
      fc.property(deadline, fc.array(deadline, { maxLength: 5 }), (first, rest) => {
        const last = rest.reduce(
          (badge, own) => badge.child({ deadline: own }),
          setup({ deadline: first }).meta,
        );
        const limits = [first, ...rest].filter((limit) => limit !== null);
        expect(last.deadline).toBe(limits.length === 0 ? null : Math.min(...limits));
      }),
    );
  });

  test("refuses a deadline that is no time", () => {
    for (const deadline of [null, 5000]) {
      expect(() => setup({ deadline }).meta.child({ deadline: Number.NaN })).toThrow(
        expect.objectContaining({ code: "invalid_argument" }),
      );
    }
  });
});

describe("C2: check", () => {
  test("passes while nobody cancelled and the deadline has not passed", () => {
    const { meta, clock } = setup({ deadline: 5000 });
    clock.set(4999);
    expect(() => meta.check()).not.toThrow();
    clock.set(5000);
    expect(() => meta.check()).not.toThrow();
  });

  test("B5: throws a cancellation with status deadline_exceeded once the deadline has passed", () => {
    const { meta, clock } = setup({ deadline: 5000 });
    clock.set(5001);
    expect(() => meta.check()).toThrow(CancellationError);
    expect(() => meta.check()).toThrow(
      expect.objectContaining({
        code: "cancelled",
        message: "deadline exceeded",
        status: "deadline_exceeded",
      }),
    );
  });

  test("looks for a cancel first and at the deadline second", () => {
    const { meta, clock } = setup({ deadline: 5000 });
    clock.set(5001);
    meta.cancellation.cancel("user stopped");
    expect(() => meta.check()).toThrow(
      expect.objectContaining({ reason: "user stopped", status: "cancelled" }),
    );
  });

  test("keeps the deadline in the badge alone: the token is not cancelled by it", () => {
    const { meta, clock } = setup({ deadline: 5000 });
    const child = meta.child();
    clock.set(5001);
    expect(() => child.check()).toThrow("deadline exceeded");
    expect([meta.cancellation.cancelled, child.cancellation.cancelled]).toEqual([false, false]);
    expect(() => meta.cancellation.check()).not.toThrow();
  });

  test("passes at any time without a deadline, and fails at once with one of zero", () => {
    const { meta, clock } = setup();
    clock.set(Number.MAX_SAFE_INTEGER);
    expect(() => meta.check()).not.toThrow();
    expect(() => setup({ deadline: 0 }).meta.check()).toThrow("deadline exceeded");
  });

  test("of a child fails at the child's deadline, while the parent goes on", () => {
    const { meta, clock } = setup({ deadline: 9000 });
    const child = meta.child({ deadline: 5000 });
    clock.set(6000);
    expect(() => child.check()).toThrow("deadline exceeded");
    expect(() => meta.check()).not.toThrow();
    clock.set(9001);
    expect(() => meta.check()).toThrow("deadline exceeded");
  });
});

describe("a badge", () => {
  test.each(Object.keys(setup().meta))("is frozen: %s cannot be assigned", (field) => {
    const { meta } = setup();
    for (const badge of [meta, meta.child()]) {
      expect(() => Object.assign(badge, { [field]: null })).toThrow(TypeError);
      expect(() => Object.assign(badge, { extra: 1 })).toThrow(TypeError);
    }
  });
});
