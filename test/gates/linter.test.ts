import { expect, test } from "vitest";
import { inCopy, type PlantedCopy } from "./planted-copy.ts";

interface Plant {
  readonly rule: string;
  readonly file: string;
  readonly source: string;
  readonly code: string;
  /** Text that the diagnostic's message or help must contain. */
  readonly message: string;
}

interface Diagnostic {
  readonly filename: string;
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly help?: string;
}

const kernelImports = {
  code: "eslint(no-restricted-imports)",
  message: "the kernel imports nothing but itself",
};
const agentImports = {
  code: "eslint(no-restricted-imports)",
  message: "agents import themselves and the kernel",
};
const deepImport = { code: "eslint(no-restricted-imports)", message: "go through the kernel's index" };
const testingImports = {
  code: "eslint(no-restricted-imports)",
  message: "a suite receives { test, expect }",
};

const coreImports = {
  code: "eslint(no-restricted-imports)",
  message: "the runtime's core imports the kernel's index and no package",
};

/** Pairs of folders in which the first must not import the second, as in section "Folders" of docs/contributing/architecture.md. */
const folderArrows: readonly (readonly [layer: string, from: string, to: string])[] = [
  ["src/kernel", "stores", "agent"],
  ["src/kernel", "events", "stores"],
  ["src/kernel", "sessions", "events"],
  ["src/kernel", "run", "events"],
  ["src/kernel", "limits", "run"],
  ["src/kernel", "messages", "limits"],
  ["src/kernel", "errors", "messages"],
  ["src/kernel", "base", "errors"],
  ["src/runtime", "client", "run"],
  ["src/runtime", "worker", "client"],
  ["src/runtime", "run", "model"],
  ["src/runtime", "context", "run"],
  ["src/runtime", "tool", "model"],
  ["src/runtime", "model", "tool"],
  ["src/runtime", "task", "context"],
  ["src/runtime", "journal", "task"],
  ["src/runtime", "process", "journal"],
  ["src/runtime", "stores", "journal"],
  ["src/runtime/stores/sqlite", "tail", "retention"],
  ["src/runtime/stores/sqlite", "retention", "tail"],
  ["src/runtime/stores/sqlite", "rows", "tail"],
  ["src/runtime/stores/sqlite", "db", "rows"],
  ["src/runtime/stores", "codec", "sqlite"],
  ["src/runtime/stores", "sql", "postgres"],
  ["src/agents", "invocation", "calling"],
  ["src/agents", "definition", "invocation"],
  ["src/agents", "architectures", "definition"],
  ["src/agents", "team", "interception"],
  ["src/agents", "interception", "team"],
  ["src/agents", "context", "interception"],
  ["src/agents", "base", "context"],
  ["src/agents/interception", "extensions", "guardrails"],
  ["src/agents/interception", "guardrails", "gate"],
  ["src/agents/interception", "middleware", "guardrails"],
  ["src/agents/interception", "permissions", "middleware"],
  ["src/agents/interception", "hooks", "middleware"],
  ["src/agents/interception", "limits", "gate"],
  ["src/agents/interception", "turns", "gate"],
  ["src/surfaces", "client", "cli"],
  ["src/surfaces", "server", "client"],
  ["src/surfaces", "channels", "protocols"],
  ["src/surfaces", "protocols", "channels"],
  ["src/surfaces", "http", "server"],
  ["src/surfaces", "view", "http"],
  ["src/surfaces/cli", "commands", "programs"],
  ["src/surfaces/cli", "demo", "commands"],
  ["src/surfaces/cli", "setup", "commands"],
  ["src/surfaces/cli", "terminal", "setup"],
  ["web", "pages", "app"],
  ["web", "parts", "pages"],
  ["web", "model", "parts"],
  ["web", "api", "model"],
  ["web", "base", "api"],
  ["web/pages", "runs", "run"],
];

const plants: readonly Plant[] = [
  ...folderArrows.map(([layer, from, to]): Plant => ({
    rule: `${layer}/${from} does not import ${to}`,
    file: `${layer}/${from}/planted-arrow.ts`,
    source: `export { planted } from "../${to}/planted.ts";\n`,
    code: "eslint(no-restricted-imports)",
    message: `${layer}/${from} imports`,
  })),
  {
    rule: "an engine does not import the store from the kernel",
    file: "src/runtime/worker/planted-store-engine.ts",
    source: `import type { Store } from "../../kernel/index.ts";\n\nexport type Planted = Store;\n`,
    code: "eslint(no-restricted-imports)",
    message: "an engine uses only its port",
  },
  {
    rule: "an engine does not import the journal",
    file: "src/runtime/worker/planted-journal-engine.ts",
    source: `export { RunState as planted } from "../journal/run-state.ts";\n`,
    code: "eslint(no-restricted-imports)",
    message: "an engine uses only its port",
  },
  {
    rule: "the kernel's agent folder does not import the runtime",
    file: "src/kernel/agent/planted-layer.ts",
    source: `export { sha256 as planted } from "../../runtime/index.ts";\n`,
    code: "eslint(no-restricted-imports)",
    message: "src/kernel/agent imports",
  },
  {
    rule: "files do not import each other's types in a cycle",
    file: "src/runtime/task/planted-type-circle.ts",
    source: `import type { Tail } from "./planted-type-circle-tail.ts";\n\nexport interface Head {\n  readonly tail: Tail;\n}\n`,
    code: "import(no-cycle)",
    message: "Dependency cycle detected",
  },
  {
    rule: "a cycle of types is also reported in its other file",
    file: "src/runtime/task/planted-type-circle-tail.ts",
    source: `import type { Head } from "./planted-type-circle.ts";\n\nexport interface Tail {\n  readonly head: Head | null;\n}\n`,
    code: "import(no-cycle)",
    message: "Dependency cycle detected",
  },
  {
    rule: "the runtime's core imports no package",
    file: "src/runtime/planted-package.ts",
    source: `import { Ajv } from "ajv";\n\nexport const planted = new Ajv();\n`,
    ...coreImports,
  },
  {
    rule: "the runtime's core does not read the platform's clock",
    file: "src/runtime/planted-clock.ts",
    source: `export const planted = (): number => Date.now();\n`,
    code: "eslint(no-restricted-globals)",
    message: "take a Clock",
  },
  {
    rule: "the runtime's core does not schedule turns of the event loop by itself",
    file: "src/runtime/run/planted-turn.ts",
    source: `export const planted = (done: () => void): unknown => setImmediate(done);\n`,
    code: "eslint(no-restricted-globals)",
    message: "take an EventLoop",
  },
  {
    rule: "the runtime's core does not measure time by itself",
    file: "src/runtime/worker/planted-measure.ts",
    source: `export const planted = (): number => performance.now();\n`,
    code: "eslint(no-restricted-properties)",
    message: "take an EventLoop",
  },
  {
    rule: "the runtime's core imports no timers of Node",
    file: "src/runtime/client/planted-timer.ts",
    source: `export { setTimeout as planted } from "node:timers/promises";\n`,
    code: "eslint(no-restricted-imports)",
    message: "take a Clock or an EventLoop",
  },
  {
    rule: "agents set no timers of the platform",
    file: "src/agents/base/planted-timer.ts",
    source: `export const planted = (done: () => void): unknown => setTimeout(done, 1);\n`,
    code: "eslint(no-restricted-globals)",
    message: "take a Clock",
  },
  {
    rule: "the kernel schedules no microtasks",
    file: "src/kernel/base/planted-task.ts",
    source: `export const planted = (done: () => void): void => queueMicrotask(done);\n`,
    code: "eslint(no-restricted-globals)",
    message: "take an EventLoop",
  },
  {
    rule: "the runtime's core does not use the platform's random numbers",
    file: "src/runtime/planted-chance.ts",
    source: `export const planted = (): number => Math.random();\n`,
    code: "eslint(no-restricted-properties)",
    message: "take a Random",
  },
  {
    rule: "the kernel imports no Node module",
    file: "src/kernel/planted-node-module.ts",
    source: `import { readFileSync } from "node:fs";\n\nexport const planted = readFileSync;\n`,
    ...kernelImports,
  },
  {
    rule: "the kernel imports no package",
    file: "src/kernel/planted-package.ts",
    source: `import { z } from "zod";\n\nexport const planted = z.string();\n`,
    ...kernelImports,
  },
  {
    rule: "the kernel does not import the types of a package",
    file: "src/kernel/planted-package-type.ts",
    source: `import type { z } from "zod";\n\nexport type Planted = z.ZodType;\n`,
    ...kernelImports,
  },
  {
    rule: "the kernel does not import a package dynamically",
    file: "src/kernel/planted-dynamic-import.ts",
    source: `export const planted = (): Promise<unknown> => import("zod");\n`,
    ...kernelImports,
  },
  {
    rule: "the kernel imports no other layer",
    file: "src/kernel/planted-arrow.ts",
    source: `export { sha256 as planted } from "../runtime/index.ts";\n`,
    ...kernelImports,
  },
  {
    rule: "the kernel does not reference platform types",
    file: "src/kernel/planted-reference.ts",
    source: `/// <reference types="node" />\nexport const planted = 1;\n`,
    code: "typescript(triple-slash-reference)",
    message: "node",
  },
  {
    rule: "the kernel does not read the current date",
    file: "src/kernel/planted-date.ts",
    source: `export const planted = (): string => new Date().toISOString();\n`,
    code: "eslint(no-restricted-globals)",
    message: "'Date'",
  },
  {
    rule: "the kernel does not read the current date through globalThis",
    file: "src/kernel/planted-global-date.ts",
    source: `export const planted = (): number => globalThis.Date.now();\n`,
    code: "eslint(no-restricted-properties)",
    message: "take a Clock",
  },
  {
    rule: "the kernel does not use Math.random",
    file: "src/kernel/planted-random.ts",
    source: `export const planted = (): number => Math.random();\n`,
    code: "eslint(no-restricted-properties)",
    message: "take a Random",
  },
  {
    rule: "the kernel does not destructure random from Math",
    file: "src/kernel/planted-taken-random.ts",
    source: `const { random } = Math;\n\nexport const planted = (): number => random();\n`,
    code: "eslint(no-restricted-properties)",
    message: "take a Random",
  },
  {
    rule: "agents import no package",
    file: "src/agents/planted-package.ts",
    source: `import { z } from "zod";\n\nexport const planted = z.string();\n`,
    ...agentImports,
  },
  {
    rule: "agents do not import capabilities",
    file: "src/agents/planted-arrow.ts",
    source: `export { tool as planted } from "../capabilities/index.ts";\n`,
    ...agentImports,
  },
  {
    rule: "agents import the kernel only through its index",
    file: "src/agents/planted-deep-import.ts",
    source: `export type { Json as Planted } from "../kernel/base/json.ts";\n`,
    ...agentImports,
  },
  {
    rule: "the runtime does not import agents",
    file: "src/runtime/planted-arrow.ts",
    source: `export { Agent as planted } from "../agents/index.ts";\n`,
    ...coreImports,
  },
  {
    rule: "the runtime imports the kernel only through its index",
    file: "src/runtime/stores/planted-deep-import.ts",
    source: `export type { Json as Planted } from "../../kernel/base/json.ts";\n`,
    ...deepImport,
  },
  {
    rule: "capabilities import the kernel only through its index",
    file: "src/capabilities/planted-deep-import.ts",
    source: `export type { Json as Planted } from "../kernel/base/json.ts";\n`,
    ...deepImport,
  },
  {
    rule: "the workspace imports the kernel only through its index",
    file: "src/workspace/planted-deep-import.ts",
    source: `export type { Json as Planted } from "../kernel/base/json.ts";\n`,
    ...deepImport,
  },
  {
    rule: "the readers of the workspace do not import capabilities",
    file: "src/workspace/files/planted-arrow.ts",
    source: `export { tool as planted } from "../../capabilities/index.ts";\n`,
    code: "eslint(no-restricted-imports)",
    message: "the workspace imports the kernel only",
  },
  {
    rule: "the workspace does not import a surface",
    file: "src/workspace/planted-arrow.ts",
    source: `export { createServer as planted } from "../surfaces/server/index.ts";\n`,
    code: "eslint(no-restricted-imports)",
    message: "the workspace imports no surface",
  },
  {
    rule: "the assembly does not import the workspace",
    file: "src/assembly/planted-arrow.ts",
    source: `export { loadWorkspace as planted } from "../workspace/workspace.ts";\n`,
    code: "eslint(no-restricted-imports)",
    message: "arrows point down: the assembly imports",
  },
  {
    rule: "the assembly does not import experiments",
    file: "src/assembly/planted-experiment.ts",
    source: `export { experiment as planted } from "../experiments/experiment.ts";\n`,
    code: "eslint(no-restricted-imports)",
    message: "arrows point down: the assembly imports",
  },
  {
    rule: "experiments do not import the workspace",
    file: "src/experiments/planted-arrow.ts",
    source: `export { loadWorkspace as planted } from "../workspace/workspace.ts";\n`,
    code: "eslint(no-restricted-imports)",
    message: "arrows point down: experiments import",
  },
  {
    rule: "experiments import a layer only through its index",
    file: "src/experiments/planted-deep-import.ts",
    source: `export { sha256 as planted } from "../runtime/process/sha256.ts";\n`,
    code: "eslint(no-restricted-imports)",
    message: "go through a layer's index",
  },
  ...["agents", "capabilities", "assembly", "experiments", "workspace", "surfaces"].map((layer) => ({
    rule: `src/${layer} does not import an entry`,
    file: `src/${layer}/planted-entry.ts`,
    source: `export { Agent as planted } from "../entries/index.ts";\n`,
    code: "eslint(no-restricted-imports)",
    message: layer === "agents" ? "agents import themselves" : "nothing inside the package imports it",
  })),
  {
    rule: "surfaces import a layer only through its index",
    file: "src/surfaces/planted-deep-import.ts",
    source: `export { sha256 as planted } from "../runtime/process/sha256.ts";\n`,
    code: "eslint(no-restricted-imports)",
    message: "go through a layer's index",
  },
  {
    rule: "published suites import no test runner",
    file: "src/testing/contracts/planted-runner.ts",
    source: `import { expect } from "vitest";\n\nexport const planted: unknown = expect;\n`,
    ...testingImports,
  },
  {
    rule: "published suites import no part of a test runner",
    file: "src/testing/planted-runner-part.ts",
    source: `import { startVitest } from "vitest/node";\n\nexport const planted: unknown = startVitest;\n`,
    ...testingImports,
  },
  {
    rule: "test doubles do not import the contract suites",
    file: "src/testing/planted-suite.ts",
    source: `export { storeContracts as planted } from "./contracts/index.ts";\n`,
    code: "eslint(no-restricted-imports)",
    message: "test doubles do not import the contract suites",
  },
  {
    rule: "files do not import each other in a cycle",
    file: "src/runtime/planted-circle.ts",
    source: `import { tail } from "./planted-circle-tail.ts";\n\nexport const head = (): number => tail();\n`,
    code: "import(no-cycle)",
    message: "Dependency cycle detected",
  },
  {
    rule: "a cycle is also reported in its other file",
    file: "src/runtime/planted-circle-tail.ts",
    source: `import { head } from "./planted-circle.ts";\n\nexport const tail = (): number => head();\n`,
    code: "import(no-cycle)",
    message: "Dependency cycle detected",
  },
  {
    rule: "every promise is awaited or explicitly ignored",
    file: "src/runtime/planted-floating-promise.ts",
    source: `const later = async (): Promise<void> => {};\n\nexport function planted(): void {\n  later();\n}\n`,
    code: "typescript(no-floating-promises)",
    message: "Promises must be awaited",
  },
  {
    rule: "no any",
    file: "src/runtime/planted-any.ts",
    source: `export const planted = (value: any): string => String(value);\n`,
    code: "typescript(no-explicit-any)",
    message: "Unexpected `any`",
  },
  {
    rule: "source does not print to the console",
    file: "src/runtime/planted-print.ts",
    source: `export const planted = (): void => console.log("planted");\n`,
    code: "eslint(no-console)",
    message: "Unexpected console statement",
  },
  {
    rule: "file names are in kebab case",
    file: "src/runtime/PlantedName.ts",
    source: `export const planted = 1;\n`,
    code: "unicorn(filename-case)",
    message: "kebab-case",
  },
  {
    rule: "a file has at most 600 lines of code",
    file: "src/runtime/planted-long-file.ts",
    source: Array.from({ length: 601 }, (_, line) => `export const line${line} = ${line};\n`).join(""),
    code: "eslint(max-lines)",
    message: "Maximum allowed is 600",
  },
];

/** Lints only the planted files. `npm run check` lints the repository with the same script. */
const planted = await inCopy(async (copy) => {
  await copy.plant(Object.fromEntries(plants.map(({ file, source }) => [file, source])));
  return lint(copy, ...new Set(plants.map(({ file }) => file)));
});

test.for(plants)("the linter refuses a planted violation of the rule: $rule", ({ file, code, message }) => {
  expect(planted.code).toBe(1);
  expect(planted.diagnostics).toContainEqual({
    file,
    code,
    severity: "error",
    text: expect.stringContaining(message),
  });
});

async function lint(copy: PlantedCopy, ...files: readonly string[]) {
  const { code, stdout } = await copy.runScript("lint", "--format=json", ...files);
  const { diagnostics } = JSON.parse(stdout) as { readonly diagnostics: readonly Diagnostic[] };
  return {
    code,
    diagnostics: diagnostics.map((diagnostic) => ({
      file: diagnostic.filename,
      code: diagnostic.code,
      severity: diagnostic.severity,
      text: `${diagnostic.message} ${diagnostic.help ?? ""}`,
    })),
  };
}
