import type { Extension } from "./extension.ts";
import type { Guardrail } from "./guardrail.ts";
import type { Tool } from "./tool.ts";

/** Guardrails, extensions and tools that a workspace adds to an agent from its files. */
export interface ResourceSource {
  /** Returns the guardrails. They take precedence over guardrails of extensions with the same name. */
  guardrails(): Promise<readonly Guardrail[]>;
  /** Returns the extensions. */
  extensions(): Promise<readonly Extension[]>;
  /** Returns the tools. */
  tools(): Promise<readonly Tool[]>;
  /** Reads the files again. */
  reload(): Promise<void>;
}
