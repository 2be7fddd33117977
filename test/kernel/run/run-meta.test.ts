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

interface ManualClock extends Clock {
  set(now: number): void;
}

function setup(options: Partial<StandaloneOptions> = {}) {
  const clock = manualClock(1000);
  const ids = countingIds();
  return { clock, ids, meta: RunMeta.standalone({ clock, ids, ...options }) };
}

function manualClock(start: number): ManualClock {
  let current = start;
  return {
    now: () => current,
    set: (now) => void (current = now),
    schedule: () => {
      throw new Error("RunMeta must not set a timer");
    },
  };
}

function countingIds(): IdSource {
  let count = 0;
  return { next: () => `id-${(count += 1)}` };
}

function supervised() {
  const ids = countingIds();
  const supervision = Supervision.root(formatAgentId({ name: "lead" }), { ids });
  return { ids, supervision };
}

describe("RunMeta.standalone()", () => {
  test("RunMeta.standalone() creates a run id, token, trace id and span id, and leaves the other fields null", () => {
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

  test("RunMeta.standalone() keeps the given run id, token, deadline, trace id and tenant", () => {
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

  test("RunMeta.standalone() takes the run id from the supervision", () => {
    const { ids, supervision } = supervised();
    const { meta } = setup({ ids, supervision });
    expect(meta.runId).toBe(supervision.runId);
    expect(meta.supervision).toBe(supervision);
  });

  test("RunMeta.standalone() prefers the supervision's run id over the given run id", () => {
    const { supervision } = supervised();
    const { meta } = setup({ supervision, runId: formatRunId("other") });
    expect(meta.runId).toBe(supervision.runId);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    "RunMeta.standalone() throws invalid_argument for the deadline %d",
    (deadline) => {
      const refusal = expect.objectContaining({
        code: "invalid_argument",
        message: `invalid deadline ${deadline}: use epoch milliseconds, or null for no deadline`,
      });
      expect(() => setup({ deadline })).toThrow(refusal);
    },
  );
});

describe("RunMeta.child()", () => {
  test("RunMeta.child() keeps run, trace and tenant, and creates a new span and a child token", () => {
    const { meta } = setup({ tenantId: "acme" });
    const [one, other] = [meta.child(), meta.child()];
    for (const child of [one, other]) {
      expect(child).toMatchObject({ runId: meta.runId, traceId: meta.traceId, tenantId: "acme" });
      expect(child.cancellation).not.toBe(meta.cancellation);
    }
    expect(new Set([meta.spanId, one.spanId, other.spanId, one.child().spanId]).size).toBe(4);
  });

  test("C1: cancelling a RunMeta cancels its child, and cancelling the child does not cancel the parent", () => {
    const { meta } = setup();
    const [one, other] = [meta.child(), meta.child()];
    one.cancellation.cancel("this call only");
    expect(() => one.check()).toThrow("this call only");
    expect(() => meta.check()).not.toThrow();
    meta.cancellation.cancel("user stopped");
    expect(() => other.child().check()).toThrow("user stopped");
  });

  test("RunMeta.child() keeps the parent's supervision unless another one is given", () => {
    const { ids, supervision } = supervised();
    const { meta } = setup({ ids, supervision });
    const below = supervision.spawnChild({ parentId: supervision.rootId });
    expect(meta.child().supervision).toBe(supervision);
    expect(meta.child({ supervision: below }).supervision).toBe(below);
  });

  test("RunMeta.child() uses the earlier one of its own and its ancestors' deadlines", () => {
    const deadline = fc.option(fc.integer({ min: 0, max: 1e13 }));
    fc.assert(
      fc.property(deadline, fc.array(deadline, { maxLength: 5 }), (first, rest) => {
        const last = rest.reduce(
          (current, own) => current.child({ deadline: own }),
          setup({ deadline: first }).meta,
        );
        const limits = [first, ...rest].filter((limit) => limit !== null);
        expect(last.deadline).toBe(limits.length === 0 ? null : Math.min(...limits));
      }),
    );
  });

  test("RunMeta.child() throws invalid_argument for the deadline NaN", () => {
    for (const deadline of [null, 5000]) {
      expect(() => setup({ deadline }).meta.child({ deadline: Number.NaN })).toThrow(
        expect.objectContaining({ code: "invalid_argument" }),
      );
    }
  });
});

describe("C2: RunMeta.check()", () => {
  test("C2: RunMeta.check() passes before a cancel, up to and including the deadline", () => {
    const { meta, clock } = setup({ deadline: 5000 });
    clock.set(4999);
    expect(() => meta.check()).not.toThrow();
    clock.set(5000);
    expect(() => meta.check()).not.toThrow();
  });

  test("B5: RunMeta.check() throws a CancellationError with status deadline_exceeded after the deadline", () => {
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

  test("C2: RunMeta.check() reports the cancel if the deadline has passed as well", () => {
    const { meta, clock } = setup({ deadline: 5000 });
    clock.set(5001);
    meta.cancellation.cancel("user stopped");
    expect(() => meta.check()).toThrow(
      expect.objectContaining({ reason: "user stopped", status: "cancelled" }),
    );
  });

  test("C2: RunMeta.check() does not cancel the token when the deadline passes", () => {
    const { meta, clock } = setup({ deadline: 5000 });
    const child = meta.child();
    clock.set(5001);
    expect(() => child.check()).toThrow("deadline exceeded");
    expect([meta.cancellation.cancelled, child.cancellation.cancelled]).toEqual([false, false]);
    expect(() => meta.cancellation.check()).not.toThrow();
  });

  test("C2: RunMeta.check() never throws without a deadline and throws at once with the deadline 0", () => {
    const { meta, clock } = setup();
    clock.set(Number.MAX_SAFE_INTEGER);
    expect(() => meta.check()).not.toThrow();
    expect(() => setup({ deadline: 0 }).meta.check()).toThrow("deadline exceeded");
  });

  test("C2: RunMeta.check() throws for the child after the child's deadline while the check of the parent passes", () => {
    const { meta, clock } = setup({ deadline: 9000 });
    const child = meta.child({ deadline: 5000 });
    clock.set(6000);
    expect(() => child.check()).toThrow("deadline exceeded");
    expect(() => meta.check()).not.toThrow();
    clock.set(9001);
    expect(() => meta.check()).toThrow("deadline exceeded");
  });
});

describe("RunMeta", () => {
  test.each(Object.keys(setup().meta))("RunMeta is frozen: assigning %s throws a TypeError", (field) => {
    const { meta } = setup();
    for (const each of [meta, meta.child()]) {
      expect(() => Object.assign(each, { [field]: null })).toThrow(TypeError);
      expect(() => Object.assign(each, { extra: 1 })).toThrow(TypeError);
    }
  });
});
