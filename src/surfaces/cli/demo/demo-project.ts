import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The project that the demo's agents work on: a small package with a failing test, and the files of a small shop. */
const files: Readonly<Record<string, string>> = {
  "package.json": `{
  "name": "tally",
  "version": "0.8.2",
  "description": "Adds up invoices",
  "license": "MIT",
  "type": "module",
  "exports": "./src/index.js",
  "dependencies": {
    "kroner": "2.1.0",
    "slimdate": "1.4.2"
  }
}
`,
  LICENSE: `MIT License

Copyright (c) 2026 The Tally authors

Permission is hereby granted, free of charge, to any person obtaining a copy of this software.
`,
  "README.md": `# tally

Adds up invoices without losing cents.

    import { round, total } from "tally";
    total([{ price: 1.005, count: 2 }]); // 2.02

See docs/api.md. Releases follow RELEASING.md.
`,
  "RELEASING.md": `# How we release

A release has one owner. The owner reads this list from the top and stops at the first point that does not hold.

1. Dependencies. Every dependency has a licence that we may redistribute: MIT, ISC, BSD and Apache-2.0 need no question, MPL-2.0
   needs a note in the changelog, anything else stops the release. Known advisories are in advisories.json. An advisory whose range
   contains our version stops the release, unless the affected function is not called.
2. Tests. All tests pass on a clean checkout. A test that fails sometimes counts as a test that fails. The cause is fixed, not the
   test. A change of source code in a release needs the approval of a maintainer.
3. Rounding. Amounts are rounded to cents, half away from zero. A rounding error of one cent stops the release, because invoices
   are legal documents and customers add them up.
4. Surface. Every exported function is described in docs/api.md, with its parameters, its result and one example. A function that
   disappears or changes its result needs a major version and a line that says how to migrate.
5. Readme. The example in README.md shows what the package prints today. Nothing in it is planned.
6. Size. The package stays below 20 source files. A larger package needs a reason.
7. Changelog. CHANGELOG.md has a section for the version, the newest on top, written for people who use the package. It names what
   was fixed, what was added and what they have to do. Internal changes are left out.
8. Version. package.json has the new version. Nothing else in it changes in a release.
9. Afterwards. The owner answers questions for a day and writes down what this list has missed.
`,
  "CHANGELOG.md": `# Changelog

## 0.8.2

- Fixed: total() accepts an empty list.

## 0.8.1

- Added: dueDate().
`,
  "NOTES.md": `# Since 0.8.2

- added: split() divides an amount without losing a cent
- fixed: dueDate() at the end of a month
- internal: tests run with node --test
`,
  "docs/api.md": `# API

## round(amount)

Rounds to cents, half away from zero. round(1.005) is 1.01.

## total(lines)

Adds up price times count. total([{ price: 2, count: 3 }]) is 6.

## split(amount, parts)

Divides an amount without losing a cent. split(1, 3) is [0.34, 0.33, 0.33].

## dueDate(date, days)

Returns the day on which an invoice is due.
`,
  "src/index.js": `export { round } from "./round.js";
export { total, split } from "./invoice.js";
export { dueDate } from "./due-date.js";
`,
  "src/round.js": `/** Rounds to cents, half away from zero. */
export function round(amount) {
  return Math.round(amount * 100) / 100;
}
`,
  "src/invoice.js": `import { round } from "./round.js";

/** Adds up price times count. */
export function total(lines) {
  return round(lines.reduce((sum, { price, count }) => sum + round(price) * count, 0));
}

/** Divides an amount into parts without losing a cent. */
export function split(amount, parts) {
  const cents = Math.round(amount * 100);
  const share = Math.floor(cents / parts);
  return Array.from({ length: parts }, (_, index) => (share + (index < cents % parts ? 1 : 0)) / 100);
}
`,
  "src/due-date.js": `/** Returns the day on which an invoice is due. */
export function dueDate(date, days) {
  return new Date(date.getTime() + days * 86_400_000);
}
`,
  "test/tally.test.js": `import assert from "node:assert/strict";
import { test } from "node:test";
import { dueDate, round, split, total } from "../src/index.js";

test("round keeps whole cents", () => assert.equal(round(2.5), 2.5));
test("round rounds half a cent away from zero", () => assert.equal(round(1.005), 1.01));
test("total adds up", () => assert.equal(total([{ price: 2, count: 3 }]), 6));
test("total of nothing is 0", () => assert.equal(total([]), 0));
test("split loses no cent", () => assert.deepEqual(split(1, 3), [0.34, 0.33, 0.33]));
test("dueDate counts days", () => assert.equal(dueDate(new Date(0), 1).getTime(), 86_400_000));
`,
  "vendor/kroner/LICENSE": "ISC License\n\nCopyright (c) 2025 kroner\n",
  "vendor/slimdate/LICENSE": "Mozilla Public License Version 2.0\n\nCopyright (c) 2024 slimdate\n",
  "advisories.json": `[
  { "id": "ADV-2026-118", "package": "slimdate", "range": "<1.4.0", "title": "Parses dates in linear time only since 1.4.0" },
  { "id": "ADV-2026-207", "package": "kroner", "range": ">=3.0.0 <3.0.2", "title": "Wrong symbol for SEK" }
]
`,
  "shop/orders.csv": `order,item,price,status
8840,lamp,49.00,delivered
8841,desk,310.00,delivered
8841,chair,129.50,delivered damaged
8842,shelf,84.90,on its way
`,
};

/** Writes the project into a folder. */
export async function writeProject(folder: string): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
}
