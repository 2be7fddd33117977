import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type AgentId,
  defaultSpawnBudget,
  type ExecutionBudget,
  formatAgentId,
  HistoryRetention,
  type IdSource,
  parseSessionId,
  Priority,
  Supervision,
  type SupervisionJson,
} from "../../../src/kernel/index.ts";

const lead = formatAgentId({ name: "lead" });
const researcher = formatAgentId({ name: "researcher", key: "eu" });

function countingIds(): IdSource {
  let given = 0;
  return { next: () => `id-${(given += 1)}` };
}

function setup(options: Partial<Parameters<typeof Supervision.root>[1]> = {}): Supervision {
  return Supervision.root(lead, { ids: countingIds(), ...options });
}

const limit = fc.option(fc.nat(1000));
const budget: fc.Arbitrary<Partial<ExecutionBudget>> = fc.record(
  {
    maxTokens: limit,
    maxCostUsd: fc.option(fc.double({ min: 0, max: 9, noNaN: true })),
    maxTurns: limit,
    deadlineMs: limit,
  },
  { requiredKeys: [] },
);
const childOptions = fc.record(
  {
    executionBudget: budget,
    retention: fc.constantFrom(...Object.values(HistoryRetention)),
    priority: fc.constantFrom(...Object.values(Priority)),
  },
  { requiredKeys: [] },
);
const rootOptions = fc.record(
  {
    executionBudget: budget,
    spawnBudget: fc.record(
      { maxAgents: fc.integer({ min: 1, max: 99 }), allowPreempt: fc.boolean() },
      { requiredKeys: [] },
    ),
    sessionId: fc.stringMatching(/^[a-z][a-z0-9]{0,5}(\/[a-z0-9]{1,3})?$/).map(parseSessionId),
  },
  { requiredKeys: [] },
);

interface Placed {
  readonly node: Supervision;
  readonly parent: Placed | undefined;
  readonly agentId: AgentId;
}

/** A random tree: each entry of `plan` becomes a child of an earlier node. */
const tree: fc.Arbitrary<readonly Placed[]> = fc
  .tuple(rootOptions, fc.array(fc.tuple(fc.nat(), childOptions), { maxLength: 30 }))
  .map(([options, plan]) => {
    const placed: [Placed, ...Placed[]] = [{ node: setup(options), parent: undefined, agentId: lead }];
    for (const [index, [pick, own]] of plan.entries()) {
      const parent = placed[pick % placed.length] ?? placed[0];
      const node = parent.node.spawnChild({ parentId: parent.agentId, ...own });
      placed.push({ node, parent, agentId: formatAgentId({ name: `agent-${index}` }) });
    }
    return placed;
  });

describe("Supervision.root()", () => {
  test("a root node of Supervision has the default priority, retention and budgets", () => {
    const root = setup();
    expect(root).toMatchObject({
      runId: "run_id-1",
      sessionId: "ses_run_id-1",
      rootId: "lead",
      parentId: null,
      depth: 0,
      isRoot: true,
      spawnBudget: { maxAgents: 50, allowPreempt: true },
      executionBudget: { maxTokens: null, maxCostUsd: null, maxTurns: null, deadlineMs: null },
      retention: HistoryRetention.PERMANENT,
      priority: Priority.NORMAL,
    });
    expect(root.progressTopic).toBe("agent.progress/run_id-1");
  });

  test("a root node of Supervision uses the given session id and draws a new run id each time", () => {
    const ids = countingIds();
    const sessionId = parseSessionId("chat/4711");
    const runs = [Supervision.root(lead, { ids, sessionId }), Supervision.root(lead, { ids, sessionId })];
    expect(runs.map((run) => run.sessionId)).toEqual([sessionId, sessionId]);
    expect(runs.map((run) => run.runId)).toEqual(["run_id-1", "run_id-2"]);
  });

  test("a root node of Supervision without a session id draws a new session each time, also with a given run id", () => {
    const ids = countingIds();
    const runs = [1, 2].map(() => Supervision.root(lead, { ids, runId: "run_job-1" }));
    expect(runs.map((run) => run.runId)).toEqual(["run_job-1", "run_job-1"]);
    expect(runs.map((run) => run.sessionId)).toEqual(["ses_run_job-1.id-1", "ses_run_job-1.id-2"]);
    const noIds = { next: () => "not an id" };
    expect(() => Supervision.root(lead, { ids: noIds, runId: "run_job-1" })).toThrow(/invalid new id/);
  });

  test("a root node of Supervision completes a partial budget with defaults", () => {
    const root = setup({ spawnBudget: { maxAgents: 3 }, executionBudget: { maxTurns: 0 } });
    expect(root.spawnBudget).toEqual({ maxAgents: 3, allowPreempt: true });
    expect(root.executionBudget).toEqual({
      maxTokens: null,
      maxCostUsd: null,
      maxTurns: 0,
      deadlineMs: null,
    });
  });

  test.each([
    [{ spawnBudget: { maxAgents: 0 } }, "invalid maxAgents 0"],
    [{ executionBudget: { maxTokens: -1 } }, "invalid maxTokens -1"],
    [{ retention: "forever" }, `invalid history retention "forever"`],
    [{ priority: 3 }, "invalid priority 3"],
  ])("B2: a root node of Supervision with invalid options is refused: %j", (options, message) => {
    const build = () => setup(options as Parameters<typeof setup>[0]);
    expect(build).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(message) }),
    );
  });
});

describe("a child node of Supervision", () => {
  test("a child node of Supervision inherits run, session, root and budgets and has default values for its other fields", () => {
    const root = setup({ executionBudget: { maxTokens: 100 }, priority: Priority.CRITICAL });
    const child = root.spawnChild({ parentId: lead });
    expect(child).toMatchObject({
      runId: root.runId,
      sessionId: root.sessionId,
      rootId: lead,
      parentId: lead,
      depth: 1,
      isRoot: false,
      retention: HistoryRetention.RUN,
      priority: Priority.NORMAL,
      progressTopic: root.progressTopic,
    });
    expect(child.spawnBudget).toBe(root.spawnBudget);
    expect(child.executionBudget).toEqual(root.executionBudget);
  });

  test("a child node of Supervision names the manager that spawned it", () => {
    const grandchild = setup().spawnChild({ parentId: lead }).spawnChild({ parentId: researcher });
    expect(grandchild).toMatchObject({ rootId: lead, parentId: researcher, depth: 2 });
  });

  test("a child node of Supervision accepts another priority and retention than its parent", () => {
    const child = setup().spawnChild({
      parentId: lead,
      priority: Priority.HIGH,
      retention: HistoryRetention.NONE,
    });
    expect(child).toMatchObject({ priority: 4, retention: "none" });
  });

  test("B6: the budget of a child node of Supervision is tightened by the given budget and never widened", () => {
    const root = setup({ executionBudget: { maxTokens: 100, maxTurns: 5 } });
    const child = root.spawnChild({
      parentId: lead,
      executionBudget: { maxTokens: 40, maxTurns: 50, maxCostUsd: 1, deadlineMs: null },
    });
    expect(child.executionBudget).toEqual({ maxTokens: 40, maxTurns: 5, maxCostUsd: 1, deadlineMs: null });
  });

  test("a child node of Supervision with an invalid manager id is refused", () => {
    expect(() => setup().spawnChild({ parentId: "no one" as AgentId })).toThrow(
      expect.objectContaining({ code: "invalid_argument" }),
    );
  });

  test("a node of Supervision may be at any depth", () => {
    let node = setup();
    for (let depth = 0; depth < 1000; depth++) node = node.spawnChild({ parentId: lead });
    expect(node.depth).toBe(1000);
  });
});

describe("a tree of Supervision nodes", () => {
  test("all nodes of a Supervision tree share run, session, root and spawn budget, and depth counts from the root", () => {
    fc.assert(
      fc.property(tree, (placed) => {
        const [{ node: root }] = placed as [Placed, ...Placed[]];
        for (const { node, parent } of placed) {
          expect(node.runId).toBe(root.runId);
          expect(node.sessionId).toBe(root.sessionId);
          expect(node.rootId).toBe(root.rootId);
          expect(node.spawnBudget).toBe(root.spawnBudget);
          expect(node.progressTopic).toBe(root.progressTopic);
          expect(node.depth).toBe(parent === undefined ? 0 : parent.node.depth + 1);
          expect(node.parentId).toBe(parent?.agentId ?? null);
          expect(node.isRoot).toBe(parent === undefined);
        }
      }),
    );
  });

  test("B6: the budgets of a Supervision tree only tighten from the root down", () => {
    fc.assert(
      fc.property(tree, (placed) => {
        for (const { node, parent } of placed) {
          for (const dimension of ["maxTokens", "maxCostUsd", "maxTurns", "deadlineMs"] as const) {
            const above = parent?.node.executionBudget[dimension] ?? Number.POSITIVE_INFINITY;
            expect(node.executionBudget[dimension] ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(above);
          }
        }
      }),
    );
  });

  test("every node of a Supervision tree is deeply frozen", () => {
    fc.assert(
      fc.property(tree, (placed) => {
        for (const { node } of placed) expect(unfrozenIn(node)).toEqual([]);
      }),
    );
  });

  test("a node of Supervision that went through JSON is equal to the original", () => {
    fc.assert(
      fc.property(tree, (placed) => {
        const shared = placed[0]?.node.spawnBudget;
        for (const { node } of placed) {
          const stored = JSON.parse(JSON.stringify(node)) as SupervisionJson;
          const revived = Supervision.fromJSON(stored, shared);
          expect(revived).toEqual(node);
          expect(revived.toJSON()).toEqual(stored);
          expect(revived.spawnBudget).toBe(shared);
          expect(revived.progressTopic).toBe(node.progressTopic);
        }
      }),
    );
  });
});

describe("a frozen node of Supervision", () => {
  test.each(Object.keys(setup().toJSON()))("a node of Supervision refuses an assignment to %s", (field) => {
    const node = setup();
    expect(() => Object.assign(node, { [field]: null })).toThrow(TypeError);
  });

  test("a node of Supervision refuses to add or delete a field", () => {
    const node = setup();
    expect(() => Object.assign(node, { extra: 1 })).toThrow(TypeError);
    expect(Reflect.deleteProperty(node, "runId")).toBe(false);
  });

  test("a node of Supervision refuses assignments inside its budgets, given or by default", () => {
    const given = setup({ spawnBudget: { maxAgents: 2 }, executionBudget: { maxTokens: 1 } });
    for (const node of [
      setup(),
      given,
      given.spawnChild({ parentId: lead, executionBudget: { maxTurns: 1 } }),
    ]) {
      expect(() => Object.assign(node.spawnBudget, { maxAgents: 99 })).toThrow(TypeError);
      expect(() => Object.assign(node.executionBudget, { maxTokens: 99 })).toThrow(TypeError);
    }
  });

  test("changing the options after creation does not change a node of Supervision", () => {
    const options = { maxAgents: 2 };
    const root = setup({ spawnBudget: options });
    options.maxAgents = 99;
    expect(root.spawnBudget.maxAgents).toBe(2);
  });

  test("changing the JSON of a node of Supervision does not change the node", () => {
    const node = setup();
    Object.assign(node.toJSON().spawnBudget, { maxAgents: 99 });
    expect(node.spawnBudget.maxAgents).toBe(50);
  });
});

describe("a stored node of Supervision", () => {
  test("a stored node of Supervision is revived frozen and shares the tree's spawn budget if the two are equal", () => {
    const stored = setup().toJSON();
    expect(unfrozenIn(Supervision.fromJSON(stored))).toEqual([]);
    expect(Supervision.fromJSON(stored, defaultSpawnBudget).spawnBudget).toBe(defaultSpawnBudget);
    const other = Object.freeze({ maxAgents: 2, allowPreempt: true });
    expect(Supervision.fromJSON(stored, other).spawnBudget).toEqual(defaultSpawnBudget);
  });

  test("a stored node of Supervision is deeply frozen even if the given spawn budget is not", () => {
    const node = Supervision.fromJSON(setup().toJSON(), { maxAgents: 50, allowPreempt: true });
    expect(unfrozenIn(node)).toEqual([]);
  });

  test.each([
    { runId: "7" },
    { sessionId: "" },
    { rootId: "no one" },
    { parentId: "no one" },
    { depth: -1 },
    { depth: "2" },
    { depth: Number.NaN },
    { spawnBudget: { maxAgents: 0, allowPreempt: true } },
    { executionBudget: { maxTokens: -1 } },
    { retention: "forever" },
    { priority: 3 },
  ])("a stored node of Supervision with an invalid field is refused: %j", (field) => {
    const stored = { ...setup().toJSON(), ...field } as SupervisionJson;
    expect(() => Supervision.fromJSON(stored)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });
});

/** Returns the paths of all objects within a value that are not frozen. */
function unfrozenIn(value: unknown, path = "node"): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  const inside = Object.entries(value).flatMap(([key, member]) => unfrozenIn(member, `${path}.${key}`));
  return Object.isFrozen(value) ? inside : [path, ...inside];
}
