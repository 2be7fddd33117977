import type { Extension } from "./extension.ts";
import type { Guardrail } from "./guardrail.ts";
import type { Tool } from "./tool.ts";

/** What a workspace adds to an agent from its files. On a clash of names a file's guardrail wins over an extension's. */
export interface ResourceSource {
  guardrails(): Promise<readonly Guardrail[]>;
  extensions(): Promise<readonly Extension[]>;
  tools(): Promise<readonly Tool[]>;
  reload(): Promise<void>;
}
