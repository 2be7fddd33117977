import { expect, onTestFinished, test, vi } from "vitest";
import { runTogether, stepsOf } from "../../build/check.ts";
import { inCopy, readScripts } from "./planted-copy.ts";

const { control, planted } = await inCopy(async (copy) => ({
  control: await copy.runScript("format:check"),
  planted: await copy
    .plant({ "src/runtime/planted-format.ts": "export const planted = {one : 1}\n" })
    .then(() => copy.runScript("format:check")),
}));

test("the formatter accepts the unchanged repository", () => {
  expect(control).toMatchObject({ code: 0, stdout: expect.stringContaining("All matched files") });
});

test("the formatter refuses an unformatted file and names it", () => {
  expect(planted).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("src/runtime/planted-format.ts"),
  });
});

test.for(["check", "test", "test:full"])("npm run %s runs every gate", async (script) => {
  const [program, file, ...args] = (await readScripts())[script]?.split(" ") ?? [];
  expect([program, file]).toEqual(["node", "build/check.ts"]);
  const commands = stepsOf(args).flat();
  const compile = "tsc -b src src/surfaces src/testing";
  const gates = [compile, "npm run lint -- --type-check", "npm run format:check"];
  expect(commands).toEqual(expect.arrayContaining(gates));
  // The suite runs the check for dead code.
  expect(commands.some((each) => each === "vitest run" || each.endsWith("--project gates"))).toBe(true);
});

test("npm test runs all suites besides the gates, and npm run test:full also the core on other versions of Node", async () => {
  const scripts = await readScripts();
  const commandsOf = (script: string): readonly string[] => stepsOf(scripts[script]?.split(" ") ?? []).flat();
  expect(commandsOf("test")).toContain("vitest run");
  expect(commandsOf("test:full")).toEqual(expect.arrayContaining(["vitest run", "npm run test:node"]));
});

test.for<[first: string, beside: string, succeeds: boolean]>([
  ["true", "true", true],
  ["false", "true", false],
  ["true", "false", false],
])("a gate step of %s beside %s succeeds: %s", async ([first, beside, succeeds]) => {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  onTestFinished(() => write.mockRestore());
  expect(await runTogether(first, beside)).toBe(succeeds);
  const said = write.mock.calls.map(([text]) => String(text)).join("");
  expect(said).toBe(`\n${beside}: ${beside === "true" ? "succeeded" : "failed"}\n`);
});
