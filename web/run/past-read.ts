import type { RunView } from "../../src/surfaces/view/run-view.ts";
import type { RunModel } from "./run-model.ts";

/**
 * Whether the page has read all events up to the one that is shown. Steps, messages and curves need all of them; until
 * then they are incomplete, and the views say so.
 */
export function isPastRead({ past }: Pick<RunModel, "past">, { seq }: Pick<RunView, "seq">): boolean {
  return past.seq >= seq;
}
