import { Fault, type JsonObject } from "../../../kernel/index.ts";

export const toolSets = ["none", "read", "all"] as const;
export type ToolSet = (typeof toolSets)[number];

/** What makes the agent of a run. Kept with the run, so that whoever resumes it makes the same one. */
export interface RunSettings {
  /** `provider/id`. */
  readonly model: string;
  readonly baseUrl?: string;
  readonly tools: ToolSet;
  /** The folder its tools stay in. */
  readonly root: string;
  readonly instructions?: string;
  readonly maxTurns?: number;
}

const key = "reeve.run";

export function toMetadata(settings: RunSettings): JsonObject {
  return { [key]: { ...settings } };
}

export function fromMetadata(metadata: JsonObject, runId: string): RunSettings {
  const settings = metadata[key];
  if (typeof settings === "object" && settings !== null && !Array.isArray(settings))
    return settings as unknown as RunSettings;
  throw new Fault(
    "invalid_argument",
    `${runId} was not started by reeve run: resume it where its agent is registered`,
  );
}
