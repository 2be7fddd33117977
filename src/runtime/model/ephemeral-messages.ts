import { Fault, type ChatMessage, type EphemeralSource } from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";

/** What the sources show now, in their order. S4: one that throws is recorded, and the call goes on without it. */
export async function readSources(
  open: ActiveStep,
  sources: readonly EphemeralSource[],
): Promise<readonly ChatMessage[]> {
  const shown = await Promise.all(
    sources.map(async (source) => {
      try {
        return await source.messages();
      } catch (error) {
        const failure = Fault.from(error).toJSON();
        open.emit({ type: "hook_error", data: { hook: source.name, failure } });
        return [];
      }
    }),
  );
  return shown.flat();
}
