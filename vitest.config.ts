import { defineConfig } from "vitest/config";
import { ClosingLine } from "./test/reporter/closing-line.ts";

/** Suites of their own, with the folders they are in. What a store does is its contract and what that costs in files and processes. */
const apart = {
  browser: ["browser"],
  contract: ["contract", "golden", "runtime/stores"],
  crash: ["crash"],
  desktop: ["desktop"],
  gates: ["gates"],
  mcp: ["mcp"],
  package: ["package"],
  providers: ["providers"],
  surfaces: ["surfaces"],
};

export default defineConfig({
  test: {
    reporters: ["default", new ClosingLine()],
    // Half as many again as there are processors: the longest suites wait for processes they start and kill.
    maxWorkers: "150%",
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: Object.values(apart).flatMap((folders) => folders.map((folder) => `test/${folder}/**`)),
          pool: "forks",
          isolate: false,
          execArgv: ["--expose-gc"],
          provide: { shareOfRuns: 1 / 20 },
          // For a test that hangs. How fast a busy machine is, is nobody's promise.
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: "property",
          include: ["test/**/*.property.test.ts"],
          provide: { shareOfRuns: 1 },
          testTimeout: 60_000,
        },
      },
      ...Object.entries(apart).map(([name, folders]) => ({
        test: {
          name,
          include: folders.map((folder) => `test/${folder}/**/*.test.ts`),
          testTimeout: 60_000,
          ...(name === "desktop" && { globalSetup: "test/desktop/programs.ts" }),
        },
      })),
    ],
  },
});
