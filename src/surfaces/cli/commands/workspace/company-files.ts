import { programIn } from "../../../../capabilities/hire/agent-launch.ts";
import { installable } from "../../../../capabilities/hire/presets.ts";
import { packageRoot } from "../../../../assembly/package-root.ts";
import { Fault } from "../../../../kernel/index.ts";

function lead(employees: readonly string[]): string {
  return `---
# The lead of a company. Run it with: reeve run --agent lead "Fix the failing test." --model provider/id
description: Splits work between the employees and checks their results
tools: [read, ls, find, grep]
subAgents: [${employees.join(", ")}]
budget: { maxCostUsd: 5 }            # for the whole company: the lead and all employees
onBudget: ask
---

You lead a company of coding agents. Split the work into parts that touch different files, give each part to one employee, and
check what they report. Each employee works in a worktree of its own. Say in the end which branches have the work.
`;
}

function employee(harness: string): string {
  return `---
# An agent that another program is: docs/guides/hire.md. It needs the key of its provider in the environment.
description: Changes code in a worktree of its own, as ${harness}
harness: ${harness}
isolation: worktree
budget: { maxCostUsd: 2 }
---

Keep changes small. Run the tests, and commit what works.
`;
}

/**
 * Returns the files of a company: a lead, and an employee for each known agent program in `path`. Throws
 * `agent_not_found` if no known agent program is found.
 */
export function companyFiles(path: string | undefined): Readonly<Record<string, string>> {
  const known = Object.entries(installable);
  const found = known.flatMap(([name, { command }]) =>
    programIn(path, command(packageRoot)[0]) === undefined ? [] : [name],
  );
  if (found.length === 0)
    throw new Fault(
      "agent_not_found",
      `no agent to hire is in the PATH; install one of ${known.map(([, each]) => each.package).join(", ")}, such as npm install -g ${known[0]?.[1].package}`,
    );
  return {
    ".reeve/agents/lead.md": lead(found),
    ...Object.fromEntries(found.map((name) => [`.reeve/agents/${name}.md`, employee(name)])),
  };
}
