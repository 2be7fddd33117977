import type { RunView } from "../../src/surfaces/view/run-view.ts";
import type { RunModel } from "./run-model.ts";

/** Whether the page has read the steps and curves up to the event that is shown. Until then the views say so. */
export function isPastRead({ past }: Pick<RunModel, "past">, { seq }: Pick<RunView, "seq">): boolean {
  return past.seq >= seq;
}
