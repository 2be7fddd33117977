import { eventDraft, Fault, stopsTask, type GatedCall, type HookRegistry } from "../../kernel/index.ts";
import type { GateLayer } from "./gate-layer.ts";

/** Runs tool hooks first before a call, where they may deny it, and last after it, where they only observe. */
export function hookLayer(hooks: HookRegistry): { readonly first: GateLayer; readonly last: GateLayer } {
  return {
    first: {
      before: async (gated) => {
        try {
          const verdict = await hooks.preTool(gated.call, gated.facts);
          if (verdict === undefined) return undefined;
          return { decision: "deny", by: "hook", reason: verdict.deny };
        } catch (error) {
          if (stopsTask(error)) throw error;
          tellErrors(gated, "pre_tool", error);
          return { decision: "deny", by: "hook", reason: `a hook failed: ${Fault.from(error).message}` };
        }
      },
    },
    last: {
      after: async (gated, result) => {
        try {
          await hooks.postTool(gated.call, result, gated.facts);
        } catch (error) {
          if (stopsTask(error)) throw error;
          tellErrors(gated, "post_tool", error);
        }
        return result;
      },
    },
  };
}

function tellErrors({ emitEvent: tell }: GatedCall, hook: string, error: unknown): void {
  const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  for (const each of errors) tell(eventDraft("hook_error", { hook, failure: Fault.from(each).toJSON() }));
}
