import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "./run-node.ts";

const sources = await readSources();
const page = await readFile(join(repository, "docs/operations/troubleshooting.md"), "utf8");
const messages = quotedMessages(page);

test("docs/operations/troubleshooting.md quotes at least twenty error messages", () => {
  expect(messages.length).toBeGreaterThanOrEqual(20);
});

test.for(messages)(
  "the source contains the error message that docs/operations/troubleshooting.md quotes: %s",
  (message) => {
    expect(isInSource(message)).toBe(true);
  },
);

test("isInSource() rejects a message if the file with its other parts lacks one constant part", () => {
  expect(isInSource("run <run> not found in this runtime's store")).toBe(true);
  expect(isInSource("run <run> not found in that runtime's store")).toBe(false);
  expect(isInSource("run <run> not found in this runtime's store; await it first, or use ctx.parallel")).toBe(
    false,
  );
});

/**
 * The lines of the code blocks marked `text`. Each line is one message, with `<placeholders>` for interpolated values.
 */
function quotedMessages(markdown: string): readonly string[] {
  return [...markdown.matchAll(/^```text\n(.*?)\n```$/gmsu)].flatMap(([, block = ""]) => block.split("\n"));
}

/**
 * Whether one source file contains every constant part of the message, which is the text between placeholders and
 * punctuation. Some messages are composed of several strings.
 */
function isInSource(message: string): boolean {
  const parts = message
    .split(/<[^<>]+>|[:;.] /u)
    .map((part) => part.trim())
    .filter((part) => part.length > 3);
  return sources.some((source) => parts.every((part) => source.includes(part)));
}

/** Every source file, with quotation marks as they are printed. */
async function readSources(): Promise<readonly string[]> {
  const texts: string[] = [];
  for await (const file of glob("src/**/*.ts", { cwd: repository }))
    texts.push((await readFile(join(repository, file), "utf8")).replaceAll(/\\(["'`])/gu, "$1"));
  return texts;
}
