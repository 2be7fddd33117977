import { Fault, type Erasure } from "../../../kernel/index.ts";

const none: readonly Erasure[] = [];

/**
 * Returns the erasures in the run's row. They are valid only if commits of the run have ordered them, which the
 * chain proves.
 */
export function erasuresOf({ erases }: { readonly erases?: string | null }): readonly Erasure[] {
  if (erases === undefined || erases === null) return none;
  const marked = parse(erases);
  if (Array.isArray(marked) && marked.every(isErasure)) return marked;
  throw new Fault("store_corrupt", `the list of what was erased from a run cannot be parsed: ${erases}`);
}

/** Combines two lists of erasures so that each task occurs once, in the order in which its erasure was ordered. */
export function addErasures(known: readonly Erasure[], more: readonly Erasure[]): readonly Erasure[] {
  return [...known, ...more.filter(({ taskId }) => !known.some((each) => each.taskId === taskId))];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isErasure(value: unknown): value is Erasure {
  return typeof value === "object" && value !== null && "taskId" in value && "agentId" in value;
}
