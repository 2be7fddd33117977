import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    /** Share of the runs that a property asks for: all of them in `npm run test:property`, a part in other suites. */
    readonly shareOfRuns: number;
  }
}

const share = inject("shareOfRuns");

/** For what only shows over all the runs, such as that each rare case was met. */
export const inFull = share === 1;

/** For a property that takes seconds: its file is named `*.property.test.ts`, and it runs in both suites. */
export function propertyRuns(full: number): number {
  return Math.ceil(full * share);
}
