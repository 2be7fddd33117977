import { readFileSync } from "node:fs";
import { Fault, withoutSecrets } from "../../../../kernel/index.ts";
import {
  commonJsAdvice,
  isCommonJs,
  listMcpEntries,
  Notices,
  readAgentFile,
  type AgentFile,
} from "../../../../workspace/files/index.ts";
import type { InspectedWorkspace } from "../../../../workspace/inspect-workspace.ts";
import { shellWord } from "../../terminal/format.ts";
import { editing, sentence, type Found } from "./finding.ts";

/**
 * Reports whether the project is trusted, warnings about its files, and code files that Node cannot load in their
 * present form.
 */
export async function workspaceFindings(workspace: InspectedWorkspace): Promise<readonly Found[]> {
  const { places, isTrusted, lostTrust, guarded, notices } = workspace;
  const { project, projectFolder } = places;
  const found: Found[] = [];
  if (lostTrust !== undefined) found.push({ state: "error", text: sentence(lostTrust), fix: "reeve trust" });
  else if (projectFolder === undefined) found.push({ state: "ok", text: "The files are those of the user." });
  else if (isTrusted) found.push({ state: "ok", text: `The project ${project} is trusted as it is now.` });
  else if (guarded.length === 0)
    found.push({ state: "ok", text: `The project ${project} has nothing that needs trust.` });
  else
    found.push({
      state: "warning",
      text: `The project ${project} is not trusted, so ${guarded.length} of its files and settings are not used.`,
      fix: "reeve trust",
    });
  for (const { kind, path, message } of notices)
    if (kind === "warning")
      found.push({
        state: "warning",
        text: sentence(`${path}: ${withoutSecrets(message)}`),
        fix: editing(path),
      });
  return [...found, ...unloadable(workspace), ...(await invalidServers(workspace))];
}

/** Reports lists of MCP servers that cannot be read. Agents with tools of these servers cannot be created. */
async function invalidServers({ mcpFiles }: InspectedWorkspace): Promise<readonly Found[]> {
  const found: Found[] = [];
  for (const file of mcpFiles)
    try {
      await listMcpEntries([file]);
    } catch (error) {
      const text = sentence(withoutSecrets(Fault.from(error).message));
      found.push({ state: "error", text, fix: editing(file.path) });
    }
  return found;
}

/**
 * Reports modules that Node would read as CommonJS although they use `import` or `export`. None of them is loaded
 * here.
 */
function unloadable({ config, agents, extensions, guardrails }: InspectedWorkspace): readonly Found[] {
  const files = [...(config === undefined ? [] : [config]), ...agents, ...extensions, ...guardrails];
  return files.flatMap(({ path }): readonly Found[] => {
    if (!isCommonJs(path) || !/^(?:import|export)\b/mu.test(readFileSync(path, "utf8"))) return [];
    const renamed = path.replace(/([jt]s)$/u, "m$1");
    const text = `${path} cannot be loaded, because ${commonJsAdvice}.`;
    return [{ state: "error", text, fix: `mv ${shellWord(path)} ${shellWord(renamed)}` }];
  });
}

/** Returns the command that opens a workspace file that cannot be used. The error names the file. */
export function fileToEdit({ message }: Fault): string {
  const path = /(?:^|\s)(\/\S+\.(?:json|md|yaml|[cm]?[jt]s))/u.exec(message)?.[1];
  return path === undefined ? "reeve config" : editing(path);
}

/**
 * Returns the Markdown agents that the workspace uses. An agent file that cannot be read is reported later, by the
 * command that uses it.
 */
export async function agentFiles({ agents }: InspectedWorkspace): Promise<readonly AgentFile[]> {
  const read: AgentFile[] = [];
  for (const { path, origin, root } of agents) {
    if (!path.endsWith(".md")) continue;
    try {
      read.push(await readAgentFile(path, new Notices(), origin === "project" ? { within: root } : {}));
    } catch (error) {
      if (!Fault.is(error)) throw error;
    }
  }
  return read;
}
