import {
  describeValue,
  eventDraft,
  Fault,
  readProperty,
  stopsTask,
  type GatedCall,
  type HookRegistry,
} from "../../../kernel/index.ts";
import type { GateLayer } from "./gate-layer.ts";

/** Runs tool hooks first before a call, where they may deny it, and last after it, where they only observe. */
export function hookLayer(hooks: HookRegistry): { readonly first: GateLayer; readonly last: GateLayer } {
  return {
    first: {
      before: async (gated) => {
        try {
          const verdict: unknown = await hooks.preTool(gated.call, gated.facts);
          return verdict === undefined
            ? undefined
            : { decision: "deny", by: "hook", reason: denialIn(verdict) };
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

/** The reason of a denial. Throws for any other result, because a hook that means to deny must not be ignored. */
function denialIn(verdict: unknown): string {
  const reason = readProperty(verdict, "deny");
  if (typeof reason === "string") return reason;
  throw new Fault(
    "invalid_argument",
    `invalid result ${describeValue(verdict)} of a hook before a tool call: expected { deny: "reason" }, or undefined for no opinion`,
  );
}

function tellErrors({ emitEvent: tell }: GatedCall, hook: string, error: unknown): void {
  const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  for (const each of errors) tell(eventDraft("hook_error", { hook, failure: Fault.from(each).toJSON() }));
}
