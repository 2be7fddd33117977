import { describeKind, Fault, isPromise, type Tool } from "../../kernel/index.ts";

/** A list of tools, or a function that returns the current list. */
export type ToolList<Context = unknown> =
  | readonly Tool<unknown, Context>[]
  | (() => readonly Tool<unknown, Context>[]);

const none: readonly Tool[] = [];

/** The tools in a list at this moment. */
export function toolsIn(list: ToolList = none): readonly Tool[] {
  if (typeof list !== "function") return list;
  const tools: unknown = list();
  if (Array.isArray(tools)) return tools as readonly Tool[];
  throw new Fault(
    "invalid_argument",
    `invalid tools: the function returned ${describeKind(tools)}; expected a list of tools${isPromise(tools) ? "; await the list before you create the agent" : ""}`,
  );
}
