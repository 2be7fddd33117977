import { expect, test } from "vitest";
import {
  Agent,
  HookManager,
  permissions,
  Sequential,
  toolHooks,
  type AgentOptions,
} from "../../../src/entries/index.ts";
import {
  eventDraft,
  type Architecture,
  type Dependencies,
  type FastFlags,
  type Telemetry,
} from "../../../src/kernel/index.ts";
import { auditLogger, tracing } from "../../../src/assembly/middleware.ts";

/** Creates an agent that notes the flags its architecture sees. */
function flagged(options: Partial<AgentOptions>): {
  readonly agent: Agent;
  readonly flags: () => FastFlags | undefined;
} {
  let flags: FastFlags | undefined;
  const architecture: Architecture = {
    name: "flags",
    requiresModel: false,
    async *run(session, deps) {
      flags = flagsOf(deps);
      session.output = "done";
      yield eventDraft("architecture_event", { architecture: "flags", name: "flags.seen", data: {} });
    },
    declaredWorkers: () => ({}),
  };
  return { agent: new Agent({ name: "flags", architecture, ...options }), flags: () => flags };
}

function flagsOf(deps: Dependencies): FastFlags {
  const { fastAudit, fastTelemetry, fastPermissions, fastHooks, fastRuntime, fastBudget } = deps;
  return { fastAudit, fastTelemetry, fastPermissions, fastHooks, fastRuntime, fastBudget };
}

const telemetry: Telemetry = {
  startSpan: () => ({ set: () => {}, fail: () => {}, end: () => {}, during: (body) => body() }),
  count: () => {},
  measure: () => {},
};
const all: FastFlags = {
  fastAudit: true,
  fastTelemetry: true,
  fastPermissions: true,
  fastHooks: true,
  fastRuntime: false,
  fastBudget: true,
};

test.for<readonly [string, Partial<AgentOptions>, Partial<FastFlags>]>([
  ["no layer", {}, {}],
  [
    "the middleware auditLogger",
    { middleware: [auditLogger({ log: { record: async () => {} } })] },
    { fastAudit: false },
  ],
  ["telemetry", { telemetry }, { fastTelemetry: false }],
  ["the middleware tracing", { middleware: [tracing({ telemetry })] }, { fastTelemetry: false }],
  ["permissions", { permissions: permissions({}) }, { fastPermissions: false }],
  ["hooks", { hooks: new HookManager() }, { fastHooks: false }],
  ["tool hooks", { toolHooks: toolHooks({}) }, { fastHooks: false }],
  ["a limit on tokens", { budget: { maxTokens: 9 } }, { fastBudget: false }],
  ["a limit on cost", { budget: { maxCostUsd: 9 } }, { fastBudget: false }],
  ["a limit on turns", { budget: { maxTurns: 9 } }, { fastBudget: false }],
  ["a deadline", { budget: { deadlineMs: 60_000 } }, { fastBudget: false }],
])(
  "F1: the fast-path flags of an agent with %s are false exactly for the layer that this part uses",
  async ([, options, off]) => {
    const { agent, flags } = flagged(options);
    await agent.invoke("Go");
    expect(flags()).toEqual({ ...all, ...off });
  },
);

test("F1: the flag fastBudget is false in a child whose parent has a limit", async () => {
  const { agent, flags } = flagged({});
  await new Sequential({ name: "line", steps: [agent], budget: { maxTurns: 9 } }).invoke("Go");
  expect(flags()).toEqual({ ...all, fastBudget: false });
});
