import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository, runNode } from "../../gates/run-node.ts";
import { main, reeve } from "./reeve-process.ts";

test("reeve --help groups every command by purpose", async () => {
  const { code, out } = await reeve(["--help"]);
  const headings = out.filter((line) => /^[A-Z].*:$/u.test(line));
  expect({ code, headings }).toEqual({
    code: 0,
    headings: [
      "Options:",
      "Run agents:",
      "Look at runs:",
      "Control runs:",
      "Workflows and schedules:",
      "The workspace:",
      "Servers and workers:",
      "Help:",
      "Exit codes:",
    ],
  });
  const [start, end] = [out.indexOf("Look at runs:"), out.indexOf("Control runs:")];
  const names = out.slice(start + 1, end).map((line) => line.trim().split(" ")[0]);
  expect(names).toEqual(expect.arrayContaining(["ps", "inbox", "show", "tree", "logs", "cost", "audit"]));
});

/** Sends one request, and returns the text of the answer or the status of the error. */
const recorder = `
  import { registerHooks } from "node:module";
  const loaded = [];
  registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
  process.on("exit", () => process.stderr.write(JSON.stringify(loaded)));
  const main = process.argv[1];
  process.argv = [process.argv[0], "reeve", "--help"];
  await import(main);
`;

/** The modules of Node that a server, a store or a terminal library would load. */
const heavy = ["sqlite", "http", "https", "http2", "net", "tls", "dgram", "worker_threads", "vm"];

test.each([
  { what: "the sources", path: join(repository, "src/surfaces/cli/main.ts") },
  { what: "the bundle", path: main },
])(
  "reeve --help of $what loads no other layer and no package but the parser of arguments",
  async ({ path }) => {
    const { code, stderr } = await runNode(["--input-type=module", "-e", recorder, path], repository);
    expect(code).toBe(0);
    const loaded = JSON.parse(stderr) as readonly string[];
    const packages = loaded.flatMap((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//u.exec(url)?.[1] ?? []);
    expect([...new Set(packages)]).toEqual(["commander"]);
    expect(loaded.filter((url) => heavy.some((name) => url === `node:${name}`))).toEqual([]);
    const own = loaded.flatMap((url) => /\/(?:src|dist)\/(.+)\.[jt]s$/u.exec(url)?.[1] ?? []);
    expect(own).toContain("surfaces/cli/main");
    const light =
      /^(?:surfaces\/cli\/(?!commands\/)|assembly\/(?:node-version|package-root)$|chunks\/(?!kernel))/u;
    expect(own.filter((name) => !light.test(name))).toEqual([]);
    // A chunk may contain any module, so their size counts.
    const sizes = loaded.flatMap((url) => (url.includes("/dist/") ? [statSync(new URL(url)).size] : []));
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(200_000);
  },
);

test("reeve names its own command if a person types the command of another tool", async () => {
  const { code, out, talk } = await reeve(["settings"]);
  expect({ code, out, talk }).toEqual({
    code: 2,
    out: [],
    talk: "reeve: unknown command settings; use reeve config\n",
  });
});
