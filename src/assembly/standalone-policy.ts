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
