import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { AlternatingProjects } from "./test/alternating-projects.ts";
import { missingChromium } from "./test/chromium.ts";
import { isFull } from "./test/effort.ts";
import { ClosingLine } from "./test/reporter/closing-line.ts";

// Tests start hundreds of processes that load the sources. With the cache they need a third of the time for it.
process.env["NODE_COMPILE_CACHE"] ??= fileURLToPath(new URL("node_modules/.cache/compile", import.meta.url));

// No test may read or write the files of the person who runs the tests.
process.env["REEVE_HOME"] = fileURLToPath(new URL("node_modules/.cache/absent-home", import.meta.url));

/** A test that takes longer hangs, in milliseconds. The limit is generous, because tests make no promise about speed. */
const hangs = isFull ? 1_800_000 : 600_000;

/** Tests that simulate the death of a process leave its runtimes and stores open. Node would print a warning for each. */
const quiet = ["--disable-warning=runtime_open", "--disable-warning=store_lost"];

/**
 * Node loads the sources and the tests itself, without their types, and keeps their compiled code. A worker loads all
 * sources in a quarter of the time that Vite's module runner needs, and Vite transforms no file. No test mocks a module.
 */
const native = { experimental: { viteModuleRunner: false, nodeLoader: false } };

/** The limits of every project. `expect.poll()` would give up after a second, and names what it waits for before the test ends. */
const patient = {
  testTimeout: hangs,
  hookTimeout: hangs,
  expect: { poll: { timeout: hangs / 2 } },
  execArgv: quiet,
};

/** The tests that need a browser. */
const browserTests = ["test/attacks/browser.test.ts", "test/browser/**", "test/page/**"];
const withoutBrowser = missingChromium();
const skipped = withoutBrowser === undefined ? [] : browserTests;
// Only `npm run test:full` and `npm run test:desktop` run the tests of the desktop.
if (!isFull && !process.argv.includes("desktop")) skipped.push("test/desktop/**");
if (withoutBrowser !== undefined && !process.argv.includes("unit"))
  process.stderr.write(`\nTHE BROWSER TESTS ARE SKIPPED: ${withoutBrowser}\n\n`);

/** The suites beside the unit tests, each with its folders under `test/`. */
const apart = {
  attacks: ["attacks"],
  browser: ["browser"],
  chat: ["chat"],
  contract: ["contract", "golden", "runtime/stores"],
  crash: ["crash"],
  desktop: ["desktop"],
  gates: ["gates"],
  hire: ["hire"],
  mcp: ["mcp"],
  package: ["package"],
  page: ["page"],
  postgres: ["postgres"],
  // The tests of worktrees start git hundreds of times.
  processes: ["processes", "capabilities/worktrees"],
  providers: ["providers"],
  restate: ["restate"],
  simulation: ["simulation"],
  surfaces: ["surfaces"],
  view: ["surfaces/view"],
};

/** What is started or built before the tests of a suite. */
const setups: Readonly<Record<string, readonly string[]>> = {
  attacks: ["bubblewrap.ts", "chromium.ts"],
  browser: ["chromium.ts"],
  chat: ["tmux.ts", "built-package.ts"],
  crash: ["crash/bundled-workers.ts"],
  hire: ["bubblewrap.ts"],
  desktop: ["desktop/programs.ts"],
  package: ["package/installed-package.ts"],
  page: ["chromium.ts", "page/chromium.ts"],
  postgres: ["postgres/shared-server.ts", "crash/bundled-workers.ts"],
  processes: ["bubblewrap.ts"],
  // The tests of the Restate engine start the command line.
  restate: ["postgres/shared-server.ts", "crash/bundled-workers.ts", "built-package.ts"],
  surfaces: ["bubblewrap.ts", "built-package.ts"],
};

/**
 * The suites whose files may share a process: no file leaves anything behind that another one notices. The tests of the
 * view count executed blocks, which functions that other files have warmed up would change.
 */
const shared = new Set([
  "attacks",
  "chat",
  "contract",
  "crash",
  "hire",
  "mcp",
  "page",
  "postgres",
  "providers",
  "restate",
  "simulation",
  "surfaces",
]);

export default defineConfig({
  test: {
    // A terminal shows the progress. A log has only failures and the closing line.
    reporters: [process.stdout.isTTY ? "default" : "minimal", new ClosingLine()],
    // Two more workers than processors, because the longest suites mostly wait for processes that they start and kill. A
    // number, because Vitest limits a percentage to the number of processors.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: AlternatingProjects },
    projects: [
      {
        test: {
          name: "unit",
          globalSetup: "test/bubblewrap.ts",
          include: ["test/**/*.test.ts"],
          exclude: Object.values(apart).flatMap((folders) => folders.map((folder) => `test/${folder}/**`)),
          pool: "forks",
          isolate: false,
          ...native,
          ...patient,
          execArgv: ["--expose-gc", ...quiet],
        },
      },
      {
        // Node cannot load the components of the page, so that Vite does.
        test: { name: "web", include: ["web/**/*.test.ts"], pool: "forks", isolate: false, ...patient },
      },
      ...Object.entries(apart).map(([name, folders]) => ({
        test: {
          name,
          include: folders.map((folder) => `test/${folder}/**/*.test.ts`),
          exclude: [...skipped, ...(name === "surfaces" ? ["test/surfaces/view/**"] : [])],
          globalSetup: (setups[name] ?? []).map((file) => `test/${file}`),
          ...native,
          ...patient,
          // One process loads the sources once for many files.
          ...(shared.has(name) && { pool: "forks" as const, isolate: false }),
          // Optimised code does not count its blocks, which the tests of the view compare.
          ...(name === "view" && { pool: "forks" as const, execArgv: ["--no-opt", "--no-maglev"] }),
        },
      })),
    ],
  },
});
