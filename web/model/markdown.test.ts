import { expect, test } from "vitest";
import { blocksOf, inlineOf } from "./markdown.ts";

test("the Markdown parser of the page reads headings, numbered lists, quotes, tables and code", () => {
  const text = [
    "# Plan",
    "First words",
    "- one",
    "  - inner",
    "7. seven",
    "8) eight",
    "   continued",
    "",
    "> said",
    "> twice",
    "| Name | Cost |",
    "|------|-----:|",
    "| a | $1 |",
    "",
    "```ts",
    "const x = 1;",
    "",
    "> code",
    "```",
    "End.",
  ].join("\n");
  expect(blocksOf(text)).toEqual([
    { kind: "heading", text: "Plan" },
    { kind: "text", text: "First words" },
    {
      kind: "list",
      items: [
        { level: 0, number: null, text: "one" },
        { level: 1, number: null, text: "inner" },
        { level: 0, number: 7, text: "seven" },
        { level: 0, number: 8, text: "eight\ncontinued" },
      ],
    },
    { kind: "quote", text: "said\ntwice" },
    { kind: "table", head: ["Name", "Cost"], right: new Set([1]), rows: [["a", "$1"]] },
    { kind: "code", text: "const x = 1;\n\n> code" },
    { kind: "text", text: "End." },
  ]);
});

test("the Markdown parser of the page reads code, emphasis and links in a line, and a link never runs a script", () => {
  expect(inlineOf("see **this** and *that*, `a*b*c`, snake_case_name and _so_")).toEqual([
    { kind: "text", text: "see " },
    { kind: "strong", text: "this" },
    { kind: "text", text: " and " },
    { kind: "emphasis", text: "that" },
    { kind: "text", text: ", " },
    { kind: "code", text: "a*b*c" },
    { kind: "text", text: ", snake_case_name and " },
    { kind: "emphasis", text: "so" },
  ]);
  expect(inlineOf("[docs](https://example.org/a) https://example.org")).toEqual([
    { kind: "link", text: "docs", href: "https://example.org/a" },
    { kind: "text", text: " " },
    { kind: "link", text: "https://example.org", href: "https://example.org" },
  ]);
  for (const href of ["javascript:alert%281%29", "data:text/html,x", "/runs", "//example.org"])
    expect(inlineOf(`[x](${href})`)).toEqual([{ kind: "text", text: `[x](${href})` }]);
});

test("the Markdown parser of the page reads a line of a million marks", () => {
  for (const mark of ["[", "*", "`", "_", "| ", "http://", "](", "> ", "- "]) {
    const text = mark.repeat(1_000_000 / mark.length);
    const [block] = blocksOf(text);
    const inline = inlineOf(text);
    expect([block !== undefined, inline.length > 0]).toEqual([true, true]);
  }
});
