/** Type tests, checked by the compiler and never run. Each `@ts-expect-error` precedes a line that must not compile. */
import { Agent, type Extension } from "../../src/entries/index.ts";
import type { ExtensionApi } from "../../src/kernel/index.ts";

declare const api: ExtensionApi;

/** Events, contexts and results follow from the event type. */
export function typed(): Agent {
  api.on("tool_call", (event, ctx) => {
    event.toolName satisfies string;
    ctx.cwd satisfies string;
    return { block: true, reason: "no" };
  });
  api.on("input", async ({ text }) => ({ action: "transform", input: text.toUpperCase() }));
  api.on("turn_start", ({ data }, ctx) => {
    data.turn satisfies number;
    ctx.ui.notify("A turn starts.");
  });
  api.on("tool_call", async (_event, { ui }) => {
    (await ui.confirm("Sure?")) satisfies boolean;
    (await ui.select("Which?", ["a", "b"])) satisfies "a" | "b" | undefined;
  });
  // @ts-expect-error: there is no such event
  api.on("tool_calls", () => undefined);
  // @ts-expect-error: a block has a reason
  api.on("tool_call", () => ({ block: true }));
  // @ts-expect-error: the action is misspelt
  api.on("input", () => ({ action: "handle" }));
  // @ts-expect-error: handlers of committed events cannot ask
  api.on("turn_start", (_event, ctx) => void ctx.ui.confirm("Sure?"));
  // @ts-expect-error: committed events accept no answer
  api.on("turn_end", () => ({ block: true, reason: "no" }));
  // @ts-expect-error: the handlers of an extension are registered in setup
  const old: Extension = { name: "old", toolCall: () => undefined };
  // @ts-expect-error: a function is no extension
  return new Agent({ name: "a", extensions: [() => undefined, old] });
}
