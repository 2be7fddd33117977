import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { Fault, readProperty, type HostedAgent } from "../kernel/index.ts";
import { loadModule } from "./files/index.ts";
import type { Workspace } from "./workspace.ts";

/** Maximum time in which a module of workflows must load, in milliseconds. */
const importTimeoutMs = 30_000;

/**
 * Loads a module of the user and returns the workflows that it exports, also in lists. Its code needs no trust,
 * because the person names the file. Throws `invalid_argument` if the file exports no workflow.
 */
export async function workflowsOfModule(file: string): Promise<readonly HostedAgent[]> {
  const path = resolve(file);
  if (!existsSync(path))
    throw new Fault("not_found", `${file} not found; name the file of a program that exports workflows`);
  const exports = await loadModule({ path, root: dirname(path) }, importTimeoutMs);
  const found = Object.values(exports).flatMap((value): readonly unknown[] =>
    Array.isArray(value) ? (value as readonly unknown[]) : [value],
  );
  const workflows = [...new Set(found)].filter(isWorkflow);
  if (workflows.length > 0) return workflows;
  throw new Fault(
    "invalid_argument",
    `${file} exports no workflow; export them, as in export const order = workflow("order", ...)`,
  );
}

/**
 * Returns the workflows among the agents of a workspace: those that files in code and `reeve.config.ts` define. It
 * creates no agents from Markdown files, because they may need models and tools that this machine does not have. It
 * does not load code of a project that is not trusted.
 */
export async function workflowsOfWorkspace(workspace: Workspace): Promise<readonly HostedAgent[]> {
  const inCode = workspace.agents().filter(({ tools }) => tools === undefined);
  const made = await Promise.all(inCode.map(({ name }) => workspace.agent(name)));
  return made.filter(isWorkflow);
}

function isWorkflow(value: unknown): value is HostedAgent {
  return readProperty(value, "runKind") === "workflow" && typeof readProperty(value, "run") === "function";
}
