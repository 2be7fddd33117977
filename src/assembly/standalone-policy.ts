import { ToolHooks, type ToolHooksOptions } from "../agents/index.ts";
import {
  RunMeta as KernelRunMeta,
  Supervision as KernelSupervision,
  type AgentId,
  type RootOptions,
  type StandaloneOptions,
} from "../kernel/index.ts";
import { systemClock, uuidSource as systemIds } from "../runtime/process/system-sources.ts";

/** Like the kernel's `Supervision`, with default sources: `Supervision.root(agentId)` needs no options. */
export abstract class Supervision extends KernelSupervision {
  /** Creates the root of a new tree. `ids` default to random UUIDs. */
  static override root(agentId: AgentId, options: Partial<RootOptions> = {}): KernelSupervision {
    return KernelSupervision.root(agentId, { ids: systemIds, ...options });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof KernelSupervision;
  }
}

/** Like the kernel's `RunMeta`, with default sources: `RunMeta.standalone()` needs no options. */
export abstract class RunMeta extends KernelRunMeta {
  /** Creates metadata without a parent. `clock` defaults to the system's, and `ids` to random UUIDs. */
  static override standalone(options: Partial<StandaloneOptions> = {}): KernelRunMeta {
    return KernelRunMeta.standalone({ clock: systemClock, ids: systemIds, ...options });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof KernelRunMeta;
  }
}

/**
 * Creates tool hooks with the system's clock: functions that are called before and after each tool call.
 *
 * @example
 * ```ts
 * import { Agent, toolHooks } from "reeve";
 *
 * const hooks = toolHooks();
 * hooks.onPreTool(({ toolName }) => (toolName === "deploy" ? { deny: "not on Fridays" } : undefined));
 * const agent = new Agent({ name: "porter", model: "anthropic/claude-sonnet-5", toolHooks: hooks });
 * ```
 */
export function toolHooks(options: Partial<ToolHooksOptions> = {}): ToolHooks {
  return new ToolHooks({ clock: systemClock, ...options });
}
