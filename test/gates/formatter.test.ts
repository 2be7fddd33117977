import { expect, test } from "vitest";
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

test.for(["check", "test"])("npm run %s runs every gate", async (script) => {
  const steps = (await readScripts())[script]?.split(" && ");
  expect(steps).toEqual(
    expect.arrayContaining(["tsc -b", "npm run lint", "npm run format:check", "npm run dead-code"]),
  );
});
