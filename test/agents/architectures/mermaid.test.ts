import { expect, test } from "vitest";
import { deepAgent, drawAgent, planAndExecute, reflexion } from "../../../src/agents/architectures/index.ts";
import { Agent } from "../../../src/entries/index.ts";
import { formatAgentId, type HostedAgent, type Architecture } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

const model = scriptedModel([]);

function declaring(name: string, workers: () => Readonly<Record<string, HostedAgent>>): Architecture {
  return { name, run: () => [] as never, declaredWorkers: workers };
}

test("drawAgent() draws an agent with its wrapped architectures and, recursively, all workers", () => {
  const reader = new Agent({ name: "reader", model });
  const clerk: HostedAgent = { id: formatAgentId({ name: "clerk" }), run: async () => null };
  const writer = new Agent({
    name: "writer",
    model,
    architecture: deepAgent({ subAgents: { reads: reader, files: clerk } }),
  });
  const lead = new Agent({
    name: "lead",
    model,
    architecture: reflexion(
      planAndExecute({ base: deepAgent({ subAgents: { writes: writer, reads: reader } }) }),
    ),
  });
  expect(drawAgent(lead)).toBe(
    [
      "flowchart TD",
      '  a1["lead<br/><i>reflexion over plan-and-execute over deep-agent over react</i>"]',
      '  a2["writer<br/><i>deep-agent over react</i>"]',
      '  a3["reader<br/><i>react</i>"]',
      '  a4["clerk"]',
      '  a2 -->|"reads"| a3',
      '  a2 -->|"files"| a4',
      '  a1 -->|"writes"| a2',
      '  a1 -->|"reads"| a3',
      "",
    ].join("\n"),
  );
});

test("drawAgent() draws agents that declare each other as workers once", () => {
  const agents: Record<string, HostedAgent> = {};
  const made = ["one", "two"].map((name, index) => {
    const other = index === 0 ? "two" : "one";
    const architecture = declaring("swarm", () => (agents[other] ? { [other]: agents[other] } : {}));
    return (agents[name] = new Agent({ name, model, architecture }));
  });
  const chart = drawAgent(made[0] as HostedAgent);
  expect(chart.match(/\["/gu)).toHaveLength(2);
  expect(chart).toContain('a1 -->|"two"| a2');
  expect(chart).toContain('a2 -->|"one"| a1');
});

test("drawAgent() escapes names so that they cannot end a label, open a tag or start a line", () => {
  const clerk: HostedAgent = { id: formatAgentId({ name: "clerk" }), run: async () => null };
  const role = 'a"] --> x["<script>#quot;|\n%% end; `e`{}é';
  const lead = new Agent({ name: "lead", model, architecture: declaring(role, () => ({ [role]: clerk })) });
  const lines = drawAgent(lead).trimEnd().split("\n");
  expect(lines).toHaveLength(4);
  const label =
    "a#34;#93; --#62; x#91;#34;#60;script#62;#35;quot#59;#124; #37;#37; end#59; #96;e#96;#123;#125;é";
  expect(lines[1]).toBe(`  a1["lead<br/><i>${label}</i>"]`);
  expect(lines[3]).toBe(`  a1 -->|"${label}"| a2`);
});

test("drawAgent() terminates for an architecture that is its own base", () => {
  const around: { base?: Architecture } & Architecture = declaring("around", () => ({}));
  around.base = around;
  expect(drawAgent(new Agent({ name: "lead", model, architecture: around }))).toContain("<i>around</i>");
});
