import type { SandboxMode } from "../../../capabilities/tools/index.ts";
import { Fault, type JsonObject } from "../../../kernel/index.ts";

export const toolSets = ["none", "read", "all"] as const;
export type ToolSet = (typeof toolSets)[number];

/**
 * The settings of a run's agent. They are stored with the run, so that a process that resumes it creates the same
 * agent.
 */
export interface RunSettings {
  /** The model as `provider/id`. If absent, the agent's model. */
  readonly model?: string;
  readonly baseUrl?: string;
  /** The set of tools. If absent, the agent's tools, or those of the workspace. */
  readonly tools?: ToolSet;
  /** The folder that the tools may use. */
  readonly root: string;
  /** The sandbox of shell commands. If absent, `enforce`. */
  readonly sandbox?: SandboxMode;
  readonly instructions?: string;
  readonly maxTurns?: number;
  /** The agent of the workspace. If absent, `assistant`. */
  readonly agent?: string;
  /** The working folder, from which the workspace is read. If absent, `root`. */
  readonly folder?: string;
  /** The profile. If absent, none. */
  readonly profile?: string;
  /** Whether the project was trusted when the run started. */
  readonly isTrusted?: boolean;
}

const key = "reeve.run";

export function toMetadata(settings: RunSettings): JsonObject {
  return { [key]: { ...settings } };
}

/**
 * Returns the settings of a run, or `undefined` if its metadata contain none. The values are checked, because any
 * program can store any metadata.
 */
export function findSettings(metadata: JsonObject): RunSettings | undefined {
  const settings = metadata[key];
  if (typeof settings !== "object" || settings === null || Array.isArray(settings)) return undefined;
  return isSettings(settings as JsonObject) ? (settings as unknown as RunSettings) : undefined;
}

function isSettings({ tools, root, maxTurns, isTrusted, ...texts }: JsonObject): boolean {
  return (
    typeof root === "string" &&
    (isTrusted === undefined || typeof isTrusted === "boolean") &&
    (tools === undefined || (toolSets as readonly unknown[]).includes(tools)) &&
    (maxTurns === undefined || Number.isSafeInteger(maxTurns)) &&
    optionalTexts.every((name) => texts[name] === undefined || typeof texts[name] === "string")
  );
}

const optionalTexts = ["model", "baseUrl", "sandbox", "instructions", "agent", "folder", "profile"] as const;

/** Like `findSettings`, but throws `invalid_argument` if the metadata contain no settings. */
export function fromMetadata(metadata: JsonObject, runId: string): RunSettings {
  const settings = findSettings(metadata);
  if (settings !== undefined) return settings;
  throw notStartedHere(runId);
}

/** Returns the fault for an attempt to resume a run whose agent the command line cannot create. */
export function notStartedHere(runId: string): Fault {
  return new Fault(
    "invalid_argument",
    `${runId} was not started by reeve run, and only the program that started it can make its agent: start that program again, which continues the run when it registers the agent; a run that has ended is resumed there with (await runtime.find("${runId}")).resume()`,
  );
}
