import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { filesMatching } from "../package/documents.ts";
import { repository } from "./run-node.ts";

const pictures = await filesMatching(["docs/concepts/*.svg"]);
const tokens = await readFile(join(repository, "web/style/tokens.css"), "utf8");

test("each page of docs/concepts about one concept shows the picture with its name and describes the picture", async () => {
  expect(pictures.length).toBeGreaterThanOrEqual(7);
  const short: string[] = [];
  for (const picture of pictures) {
    const page = await readFile(join(repository, picture.replace(/\.svg$/u, ".md")), "utf8");
    const [, description = ""] =
      new RegExp(`!\\[([^\\]]+)\\]\\(${basename(picture)}\\)`, "u").exec(page) ?? [];
    if (description.length <= 60) short.push(picture);
  }
  expect(short).toEqual([]);
});

test.for(pictures)(
  "the picture %s has a title, text as text, and only colours of the page, for both themes",
  async (picture) => {
    const svg = await readFile(join(repository, picture), "utf8");
    expect(svg).toMatch(
      /role="img" aria-labelledby="title desc">\n<title id="title">[^<]+<\/title>\n<desc id="desc">[^<]+</u,
    );
    expect(svg.match(/<text/gu)?.length).toBeGreaterThan(5);
    const [light = "", dark = ""] = tokens.split(':root[data-theme="dark"]');
    const [own = "", ownDark = ""] = svg.split("@media (prefers-color-scheme:dark)");
    for (const [style, known] of [
      [own, light],
      [ownDark, dark],
    ] as const) {
      const colours = [...style.matchAll(/:#(?<colour>[0-9a-f]{3,6})\b/gu)].map(({ groups }) =>
        long(groups?.["colour"] ?? ""),
      );
      expect(colours.length).toBeGreaterThan(10);
      expect(colours.filter((colour) => !known.includes(colour))).toEqual([]);
    }
    // A picture loads nothing and runs nothing.
    expect(svg).not.toMatch(/<script|<foreignObject|href=|@import|url\((?!#)/u);
  },
);

/** The six digits of a colour that is written with three. */
function long(colour: string): string {
  return `#${colour.length === 3 ? colour.replaceAll(/./gu, "$&$&") : colour}`;
}
