import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const source = join(import.meta.dirname, "../../src");

/** Matches comments and string literals, which may contain the word any. */
const prose = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g;
/**
 * Matches any as a separate word: not part of a longer name, not a member (`Promise.any`), not a key, and not the name
 * of a generic method (`any<Value>(`), because the type has no type arguments.
 */
const word = /(?<![\w$.])any(?![\w$<]|\??\s*[:(])/;

function linesWithAny(text: string): readonly number[] {
  const code = text.replace(prose, (found) => found.replace(/[^\n]/g, " "));
  return code.split("\n").flatMap((line, index) => (word.test(line) ? [index + 1] : []));
}

test("no source file uses any as a type", () => {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts"),
  );
  expect(files.length).toBeGreaterThan(0);
  const found = files.flatMap((file) =>
    linesWithAny(readFileSync(join(source, file), "utf8")).map((line) => `src/${file}:${line}`),
  );
  expect(found).toEqual([]);
});

test.each([
  "let x: any;",
  "f<any>()",
  "x as any",
  "const x: any[] = [];",
  "type A = string | any;",
  "(a:any) => 1",
  "Record<string, any>",
])("the check for any reports: %s", (line) => {
  expect(linesWithAny(`// first\n${line}\n`)).toEqual([2]);
});

test.each([
  "/** Of: any run. */",
  "let x = 1; // as any",
  'f(": any")',
  "let x: anything;",
  "Promise.any([])",
  "const anyone = 1;",
  "f(`as any`)",
])("the check for any accepts: %s", (line) => {
  expect(linesWithAny(line)).toEqual([]);
});
