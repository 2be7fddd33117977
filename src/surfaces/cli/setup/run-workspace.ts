import { Fault } from "../../../kernel/index.ts";
import type { RuntimeOptions } from "../../../runtime/index.ts";
import type { Workspace, WorkspaceAgent } from "../../../workspace/workspace.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";
import { askTrust } from "./ask-trust.ts";
import { defaultAgentName, openRunWorkspace, type RunWorkspaceOptions } from "./run-agent.ts";
import { toolSets, type RunSettings, type ToolSet } from "./run-settings.ts";

/**
 * Opens the workspace of a command. If the project has changed since it was trusted, and its guardrails must not be
 * left out, the person is first asked about the change. Without a terminal or without consent, a fault is thrown.
 */
export async function openAskedWorkspace(
  settings: RunSettings,
  terminal: Terminal,
  options: RunWorkspaceOptions = {},
): Promise<Workspace> {
  try {
    return await openRunWorkspace(settings, options);
  } catch (error) {
    const isLost = Fault.is(error) && "lostTrust" in (error.details ?? {});
    if (!isLost || !terminal.canAsk) throw error;
    terminal.say(`reeve: ${printable(error.message)}`);
    await using untrusted = await openRunWorkspace(settings, { ...options, trust: "never" });
    await askTrust(untrusted, terminal);
    return openRunWorkspace(settings, options);
  }
}

/**
 * Asks about trust if a person can be asked, and returns the settings of a run, completed with the settings of the
 * workspace, so that another process can resume the run with the same model and tools.
 */
export async function completeSettings(
  workspace: Workspace,
  flags: RunSettings,
  terminal: Terminal,
): Promise<RunSettings> {
  await askTrust(workspace, terminal);
  const settings = await agentSettings(workspace, flags);
  const agent = workspace.agents().find(({ name }) => name === (settings.agent ?? defaultAgentName));
  const ignored = agent === undefined ? undefined : ignoredOptions(agent, flags);
  if (ignored !== undefined) throw new Fault("invalid_argument", `${ignored}; leave the option out`);
  return settings;
}

/**
 * Returns the settings of an agent's runs, completed with the settings of the workspace. Throws if the agent cannot
 * be created.
 */
export async function agentSettings(workspace: Workspace, flags: RunSettings): Promise<RunSettings> {
  const name = flags.agent ?? workspace.settings.defaultAgent;
  const agent = workspace.agents().find((each) => each.name === (name ?? "assistant"));
  if (agent === undefined) {
    // The workspace names the nearest agent.
    await workspace.agent(name);
    throw new Fault("not_found", `agent ${name} not found`);
  }
  if (agent.model === undefined && agent.tools !== undefined) await workspace.agent(name);
  const set = agent.origin === "built-in" ? (workspace.settings.tools ?? "read") : undefined;
  const tools = flags.tools ?? toolSets.find((each): each is ToolSet => each === set);
  const { profile } = workspace.places;
  return {
    ...flags,
    ...(agent.model !== undefined && { model: agent.model }),
    ...(tools !== undefined && { tools }),
    ...(name !== undefined && { agent: name }),
    ...(profile !== undefined && { profile: profile.name }),
    ...(workspace.isTrusted && { isTrusted: true }),
  };
}

/** Options that have no effect for an agent in code, because its code defines model, tools and limits. */
const ignoredInCode = {
  model: "--model",
  baseUrl: "--base-url",
  tools: "--tools",
  sandbox: "--sandbox",
  maxTurns: "--max-turns",
} as const satisfies { readonly [Name in keyof RunSettings]?: string };

/** Options that have no effect for a hired agent, because its program has its own tools. */
const ignoredByHired = ["baseUrl", "tools", "maxTurns"] as const satisfies (keyof typeof ignoredInCode)[];

/**
 * Returns a sentence about the given options that have no effect for an agent in code, or for a hired agent.
 * `undefined` if all options have an effect.
 */
export function ignoredOptions(
  { name, path = "", tools, harness }: WorkspaceAgent,
  flags: RunSettings,
): string | undefined {
  if (tools !== undefined || (path.endsWith(".md") && harness === undefined)) return undefined;
  const ignored = harness === undefined ? Object.keys(ignoredInCode) : ignoredByHired;
  const given = (ignored as readonly (keyof typeof ignoredInCode)[]).flatMap((key) =>
    flags[key] === undefined ? [] : [ignoredInCode[key]],
  );
  if (given.length === 0) return undefined;
  if (harness !== undefined)
    return `${given.join(" and ")} cannot change agent ${name} of ${path}, which hires ${harness}`;
  return `${given.join(" and ")} cannot change agent ${name} of ${path}, which has its model, tools and limits in its code`;
}

/** Returns the runtime options that the files of a workspace set. `reeve.config.ts` takes precedence over settings. */
export function runtimeOptions({ config, settings }: Workspace): Omit<RuntimeOptions, "store"> {
  const { unknownPrice } = settings;
  return { ...(unknownPrice !== undefined && { unknownPrice }), ...config.runtime };
}

/** Prints the notices of a workspace about its files. */
export function reportNotices(workspace: Pick<Workspace, "notices">, terminal: Terminal): void {
  for (const line of noticeLines(workspace)) terminal.say(line);
}

/** Returns the notices of a workspace about its files, one line for each. */
export function noticeLines({ notices }: Pick<Workspace, "notices">): readonly string[] {
  return notices.map(
    ({ kind, path, message }) => `reeve: ${kind}: ${printable(path)}: ${printable(message)}`,
  );
}
