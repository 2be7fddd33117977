import { mkdir, open, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  editTool,
  fileTools,
  findTool,
  grepTool,
  lsTool,
  readTool,
  writeTool,
} from "../../../src/capabilities/tools/index.ts";
import { callTool, tempFolder, textOf } from "./call-tool.ts";

test("file tools that read are safe; those that write have a high risk and count as edits", async () => {
  const tools = fileTools({ root: await tempFolder() });
  expect(
    tools.map(({ name, risk, destructive, edits, concurrency }) => ({
      name,
      risk,
      destructive,
      edits,
      concurrency,
    })),
  ).toEqual([
    ...["read", "ls", "find", "grep"].map((name) => ({
      name,
      risk: "safe",
      destructive: false,
      edits: false,
      concurrency: "parallel",
    })),
    ...["write", "edit"].map((name) => ({
      name,
      risk: "high",
      destructive: true,
      edits: true,
      concurrency: "sequential",
    })),
  ]);
  expect(fileTools({ root: await tempFolder(), readOnly: true })).toHaveLength(4);
});

test("file tools refuse every path outside the root", async () => {
  const folder = await tempFolder();
  const root = join(folder, "in");
  await mkdir(root);
  await writeFile(join(folder, "secret"), "needle");
  await symlink(folder, join(root, "up"));
  const attempts: readonly [string, object][] = [
    ["read", { path: "../secret" }],
    ["read", { path: "up/secret" }],
    ["ls", { path: ".." }],
    ["ls", { path: "up" }],
    ["find", { pattern: "../*" }],
    ["find", { pattern: "/etc/*" }],
    ["find", { pattern: "*", path: "up" }],
    ["grep", { pattern: "needle", path: ".." }],
    ["grep", { pattern: "needle", path: "up/secret" }],
    ["grep", { pattern: "needle", glob: "../**" }],
    ["write", { path: "up/planted", content: "x" }],
    ["write", { path: "../planted", content: "x" }],
    ["edit", { path: "up/secret", oldText: "needle", newText: "x" }],
  ];
  const tools = new Map(fileTools({ root }).map((tool) => [tool.name, tool]));
  for (const [name, input] of attempts) {
    const tool = tools.get(name);
    if (tool === undefined) throw new Error(name);
    const result = await callTool(tool, input as never);
    expect([name, input, result.isError]).toEqual([name, input, true]);
    expect(textOf(result)).toMatch(/outside/);
  }
  // The search does not follow links.
  const find = await callTool(findTool({ root }), { pattern: "**" });
  expect(textOf(find)).not.toContain("secret");
  const grep = await callTool(grepTool({ root }), { pattern: "needle" });
  expect(textOf(grep)).not.toContain("secret");
  expect(await readFile(join(folder, "secret"), "utf8")).toBe("needle");
});

test.for([
  ["find", { pattern: String.raw`\.\./*` }],
  ["find", { pattern: "up/secret" }],
  ["find", { pattern: "up/nothing" }],
  ["grep", { pattern: "x", glob: "up/s*" }],
  ["grep", { pattern: "x", glob: String.raw`.\./secret` }],
] as const)("the file tool %s does not reveal files outside the root: %j", async ([name, input]) => {
  const folder = await tempFolder();
  const root = join(folder, "root");
  await mkdir(root);
  await writeFile(join(folder, "secret"), "x");
  await symlink("..", join(root, "up"));
  const tool = fileTools({ root }).find((each) => each.name === name);
  const { output, metadata = {} } = await callTool(tool ?? findTool({ root }), input);
  expect(textOf({ output, isError: false })).toMatch(/no file matches|leads outside/);
  expect([0, undefined]).toContain(metadata["found"] ?? metadata["files"]);
});

describe("the tool read", () => {
  test("the tool read returns a page of lines, says how to continue and keeps characters whole", async () => {
    const root = await tempFolder();
    await writeFile(join(root, "f"), "eins\nzwei\r\ndrei 🦊\nvier");
    const read = readTool({ root, maxLines: 2 });
    const first = await callTool(read, { path: "f" });
    expect(textOf(first)).toBe("eins\nzwei\n[lines 1 to 2 of a file of 25 bytes; continue with offset 3]");
    expect(first.metadata).toEqual({ path: "f", size: 25, from: 1, to: 2, isWhole: false });
    const rest = await callTool(read, { path: "f", offset: "3" });
    expect(textOf(rest)).toBe("drei 🦊\nvier");
    expect(textOf(await callTool(read, { path: "f", offset: 9 }))).toBe(
      "f has only 4 lines: there is no line 9",
    );
    const cut = await callTool(readTool({ root, maxBytes: 18 }), { path: "f" });
    expect(textOf(cut)).toBe(
      "eins\nzwei\r\ndrei \n[line 3 is cut; lines 1 to 3 of a file of 25 bytes; continue with offset 4]",
    );
  });

  test("the tool read reads an empty file, a file without a final line break and a file that ends at the limit", async () => {
    const root = await tempFolder();
    await writeFile(join(root, "empty"), "");
    await writeFile(join(root, "one"), "a\nb\n");
    const read = readTool({ root, maxLines: 2 });
    expect(textOf(await callTool(read, { path: "empty" }))).toBe("");
    const whole = await callTool(read, { path: "one" });
    expect([textOf(whole), whole.metadata?.["isWhole"]]).toEqual(["a\nb", true]);
  });

  test("the tool read reads a huge file in time and memory that depend only on the page", async () => {
    const root = await tempFolder();
    const handle = await open(join(root, "huge"), "w");
    await handle.write("first\nsecond\n");
    // The file has eight gigabytes and is sparse, so that it takes no space on the disk.
    await handle.truncate(8 * 1024 ** 3);
    await handle.close();
    const read = await callTool(readTool({ root, maxLines: 1 }), { path: "huge" });
    expect(textOf(read)).toContain("binary file");
    await writeFile(join(root, "big"), "x".repeat(99).concat("\n").repeat(50_000));
    const result = await callTool(readTool({ root }), { path: "big", offset: 40_000, limit: 1 });
    expect(textOf(result)).toBe(
      `${"x".repeat(99)}\n[lines 40000 to 40000 of a file of 5000000 bytes; continue with offset 40001]`,
    );
    const far = await open(join(root, "far"), "w");
    await far.write("short\n".repeat(2_000));
    await far.truncate(8 * 1024 ** 3);
    await far.close();
    expect(textOf(await callTool(readTool({ root }), { path: "far", offset: 1e9 }))).toBe(
      "line 1000000000 of far is more than 268435456 bytes after its start, which has 2001 lines; search the file with grep",
    );
    await writeFile(join(root, "line"), "y".repeat(3_000_000));
    const line = await callTool(readTool({ root, maxBytes: 10 }), { path: "line" });
    expect(textOf(line)).toContain("yyyyyyyyyy\n[line 1 is cut;");
  });

  test("the tool read shows images, refuses other binary files and reports bytes that are not UTF-8", async () => {
    const root = await tempFolder();
    const png = Buffer.from("89504e470d0a1a0a0000", "hex");
    await writeFile(join(root, "p.png"), png);
    await writeFile(join(root, "b"), Buffer.from([1, 0, 2]));
    await writeFile(join(root, "latin"), Buffer.from("caf\xe9", "latin1"));
    expect((await callTool(readTool({ root }), { path: "p.png" })).output).toEqual({
      type: "content",
      parts: [
        { type: "image", mediaType: "image/png", source: { kind: "base64", data: png.toString("base64") } },
      ],
    });
    expect(textOf(await callTool(readTool({ root, maxImageBytes: 3 }), { path: "p.png" }))).toContain(
      "at most 3 can be shown",
    );
    expect(textOf(await callTool(readTool({ root }), { path: "b" }))).toBe(
      "b is a binary file of 3 bytes: it cannot be read as text",
    );
    expect(textOf(await callTool(readTool({ root }), { path: "latin" }))).toContain(
      "bytes that are not UTF-8",
    );
    expect(textOf(await callTool(readTool({ root }), { path: "nope" }))).toBe("nope does not exist");
  });
});

describe("the tools write and edit", () => {
  test("the tool write creates a file with its folders or replaces it, and says which of these it did", async () => {
    const root = await tempFolder();
    const write = writeTool({ root, maxBytes: 10 });
    const first = await callTool(write, { path: "a/b/ü.txt", content: "grüß" });
    expect(textOf(first)).toBe("wrote a/b/ü.txt: 6 bytes");
    expect(first.metadata).toMatchObject({
      path: "a/b/ü.txt",
      bytes: 6,
      isNew: true,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(textOf(await callTool(write, { path: "a/b/ü.txt", content: "" }))).toBe(
      "replaced a/b/ü.txt: 0 bytes",
    );
    expect(await readFile(join(root, "a/b/ü.txt"), "utf8")).toBe("");
    expect(textOf(await callTool(write, { path: "c", content: "x".repeat(11) }))).toContain("at most 10");
    expect(textOf(await callTool(write, { path: "a", content: "" }))).toBe(
      "a is a folder: use the path of a file",
    );
  });

  test("the tool edit replaces a text that occurs once and stores a diff in the metadata", async () => {
    const root = await tempFolder();
    await writeFile(join(root, "f"), "\uFEFFone\ntwo\nthree\n");
    const result = await callTool(editTool({ root }), { path: "f", oldText: "two", newText: "$& 2 🦊" });
    expect(textOf(result)).toBe("replaced 1 occurrence in f, first in line 2");
    expect(await readFile(join(root, "f"), "utf8")).toBe("\uFEFFone\n$& 2 🦊\nthree\n");
    expect(result.metadata?.["diff"]).toContain("-two\n+$& 2 🦊\n");
  });

  test("the tool edit refuses an ambiguous or impossible edit, says what to do and changes nothing", async () => {
    const root = await tempFolder();
    const text = "a = 1\na = 1\r\n\tb = 2\r\nc\r\n";
    await writeFile(join(root, "f"), text);
    await writeFile(join(root, "bin"), Buffer.from([0xff, 0xfe, 0x00]));
    const edit = editTool({ root, maxBytes: 64 });
    const refusal = async (input: object): Promise<string> => {
      const result = await callTool(edit, { path: "f", newText: "x", ...input });
      expect(result.isError).toBe(true);
      return textOf(result);
    };
    expect(await refusal({ oldText: "a = 1" })).toBe(
      "oldText occurs 2 times in f, in lines 1, 2: include surrounding lines to make it unique, or set all",
    );
    expect(await refusal({ oldText: "zzz" })).toBe(
      "f does not contain oldText: read the file and copy the text exactly",
    );
    expect(await refusal({ oldText: "  b = 2" })).toContain("only with other white space");
    expect(await refusal({ oldText: "b = 2\nc" })).toContain(String.raw`end in \r\n`);
    expect(await refusal({ oldText: "gone", newText: "b = 2" })).toContain("seems to be done already");
    expect(await refusal({ oldText: "x" })).toContain("are equal");
    expect(await refusal({ oldText: "" })).toContain("oldText");
    expect(await refusal({ oldText: "c", newText: "c".repeat(99) })).toContain("at most 64");
    expect(await refusal({ path: "bin", oldText: "c" })).toContain("is not UTF-8 text");
    expect(await readFile(join(root, "f"), "utf8")).toBe(text);
    const all = await callTool(edit, { path: "f", oldText: "a = 1", newText: "a", all: "true" });
    expect(all.metadata).toMatchObject({ replaced: 2 });
    expect(await readFile(join(root, "f"), "utf8")).toBe("a\na\r\n\tb = 2\r\nc\r\n");
  });
});

describe("the tools ls, find and grep", () => {
  async function project(): Promise<string> {
    const root = await tempFolder();
    for (const folder of ["src/deep", "dist", "node_modules/x", ".git"])
      await mkdir(join(root, folder), { recursive: true });
    const files = {
      ".gitignore": "dist/\n*.log\n# words\n/only-here\n",
      "src/a.ts": "const needle = 1;\nother\r\nNEEDLE again",
      "src/deep/b.ts": "a.b\naxb\n",
      "src/x.log": "needle",
      "src/only-here": "needle too",
      "only-here": "needle",
      "dist/a.js": "needle",
      "node_modules/x/i.js": "needle",
      ".git/config": "needle",
      bin: "needle\0",
    };
    for (const [path, text] of Object.entries(files)) await writeFile(join(root, path), text);
    return root;
  }

  test("the tool ls lists a folder up to its limit and does not follow links", async () => {
    const root = await project();
    await symlink("/etc/passwd", join(root, "src/link"));
    expect(textOf(await callTool(lsTool({ root }), { path: "src" }))).toBe(
      "a.ts 37\ndeep/\nlink -> /etc/passwd\nonly-here 10\nx.log 6",
    );
    const few = await callTool(lsTool({ root, maxEntries: 1 }), {});
    expect(textOf(few)).toMatch(/^\.git\/\n\[\d+ more: use find with a pattern\]$/);
    expect(textOf(await callTool(lsTool({ root }), { path: "src/a.ts" }))).toContain("is not a folder");
  });

  test("the tool find matches globs and leaves out ignored files unless `ignored` is set", async () => {
    const root = await project();
    expect(textOf(await callTool(findTool({ root }), { pattern: "**/*.{ts,js,log}" }))).toBe(
      "src/a.ts\nsrc/deep/b.ts",
    );
    expect(textOf(await callTool(findTool({ root }), { pattern: "**/*.js", ignored: true }))).toBe(
      "dist/a.js\nnode_modules/x/i.js",
    );
    expect(textOf(await callTool(findTool({ root }), { pattern: "*.ts", path: "src/deep" }))).toBe(
      "src/deep/b.ts",
    );
    expect(textOf(await callTool(findTool({ root }), { pattern: "*.js", path: "dist" }))).toBe("dist/a.js");
    expect(textOf(await callTool(findTool({ root, maxResults: 1 }), { pattern: "src/**" }))).toBe(
      "src/a.ts\n[2 more: use a narrower pattern]",
    );
  });

  test("the tool grep finds lines in a folder, in a file or by a glob", async () => {
    const root = await project();
    const grep = grepTool({ root });
    const found = await callTool(grep, { pattern: "needle", ignoreCase: true });
    expect(textOf(found)).toBe(
      "src/a.ts:1: const needle = 1;\nsrc/a.ts:3: NEEDLE again\nsrc/only-here:1: needle too",
    );
    expect(found.metadata).toMatchObject({ matches: 3, skipped: 1, isCut: false });
    expect(textOf(await callTool(grep, { pattern: "^a.b$", glob: "**/*.ts" }))).toBe(
      "src/deep/b.ts:1: a.b\nsrc/deep/b.ts:2: axb",
    );
    expect(textOf(await callTool(grep, { pattern: "a.b", literal: true }))).toBe("src/deep/b.ts:1: a.b");
    expect(textOf(await callTool(grep, { pattern: "needle", path: "src/x.log" }))).toBe(
      "src/x.log:1: needle",
    );
    expect(textOf(await callTool(grep, { pattern: "(" }))).toContain("Set literal");
    expect(textOf(await callTool(grep, { pattern: "x-y[/]{2}", literal: true }))).toContain(
      "no line matches",
    );
    expect(textOf(await callTool(grepTool({ root, maxMatches: 1 }), { pattern: "needle" }))).toBe(
      "src/a.ts:1: const needle = 1;\n[only the first 1 matches are shown: use a narrower pattern or path]",
    );
  });

  test.for([0, 1, 2, 3, 5, 8, 13, 21])(
    "the tool grep ends at once if it is cancelled after %i turns of the event loop",
    async (turns) => {
      const root = await tempFolder();
      await writeFile(join(root, "f"), `${"a".repeat(60)}!`);
      const stop = new AbortController();
      const { signal } = stop;
      const searching = callTool(grepTool({ root }), { pattern: "^(a+)+$", path: "f" }, { signal });
      for (let turn = 0; turn < turns; turn++)
        await new Promise<void>((resolve) => {
          setImmediate(resolve);
        });
      stop.abort();
      expect((await searching).isError).toBe(true);
    },
  );

  test.for(["find", "grep"])(
    "the tool %s stops a glob that takes too long when the call is cancelled, and does not block the event loop",
    async (name) => {
      const root = await tempFolder();
      await writeFile(join(root, "a".repeat(200)), "x");
      const glob = `${"*a".repeat(30)}b`;
      const input = name === "find" ? { pattern: glob } : { pattern: "x", glob };
      const tool = name === "find" ? findTool({ root }) : grepTool({ root });
      const { isError } = await callTool(tool, input, { signal: AbortSignal.timeout(200) });
      expect(isError).toBe(true);
    },
  );

  test("the tool find does not block the event loop on a .gitignore pattern that takes too long", async () => {
    const root = await tempFolder();
    await writeFile(join(root, ".gitignore"), `${"*a".repeat(30)}b\n`);
    await writeFile(join(root, "a".repeat(200)), "x");
    const { isError } = await callTool(
      findTool({ root }),
      { pattern: "**" },
      { signal: AbortSignal.timeout(200) },
    );
    expect(isError).toBe(true);
  });

  test("the tool grep ends an expression that takes too long at its own time limit and says what to change", async () => {
    const root = await tempFolder();
    await writeFile(join(root, "f"), `${"a".repeat(60)}!`);
    const grep = grepTool({ root, timeoutMs: 200 });
    const result = await callTool(grep, { pattern: "^(a+)+$" });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toBe(
      "the search took longer than 200 ms and was stopped: use a simpler pattern, or a narrower path or glob",
    );
  });

  test("the tool grep refuses a pattern of more than 1,000 characters", async () => {
    const grep = grepTool({ root: await tempFolder() });
    expect(textOf(await callTool(grep, { pattern: "a".repeat(1_001) }))).toMatch(/pattern.*1000/);
  });

  test("the tool grep compiles no pattern on the thread that calls it", async () => {
    const root = await tempFolder();
    await writeFile(join(root, "f"), "needle");
    const compiled: string[] = [];
    const { RegExp: Original } = globalThis;
    globalThis.RegExp = new Proxy(Original, {
      construct(target, args: [string]) {
        compiled.push(args[0]);
        return new target(...args);
      },
    });
    try {
      expect(textOf(await callTool(grepTool({ root }), { pattern: "n[e]{2}dle" }))).toBe("f:1: needle");
    } finally {
      globalThis.RegExp = Original;
    }
    expect(compiled).not.toContain("n[e]{2}dle");
  });

  test("the tool grep stops an expression that takes too long when the call is cancelled, and does not block the event loop", async () => {
    const root = await tempFolder();
    await writeFile(join(root, "f"), `${"a".repeat(60)}!`);
    await writeFile(join(root, "long"), `${"é".repeat(5_000)}needle${"é".repeat(5_000)}`);
    const stop = new AbortController();
    const searching = callTool(
      grepTool({ root }),
      { pattern: "^(a+)+$", path: "f" },
      { signal: stop.signal },
    );
    // The event loop continues during the search.
    for (let turn = 0; turn < 50; turn++)
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    stop.abort();
    expect((await searching).isError).toBe(true);
    const cut = textOf(await callTool(grepTool({ root }), { pattern: "needle" }));
    expect(cut).toContain("needle");
    expect(cut.length).toBeLessThan(450);
  });
});

test.each([
  ".git/config",
  ".git/hooks/pre-commit",
  "sub/.vscode/tasks.json",
  ".reeve/reeve.db",
  "new/.envrc",
  ".npmrc",
  "packages/app/.NPMRC",
  ".yarnrc.yml",
  ".yarn/plugins/plugin.cjs",
  ".pnpmfile.cjs",
  "bunfig.toml",
  "pnpm-workspace.yaml",
  ".pnp.cjs",
  ".pnp.loader.mjs",
  "gradle/wrapper/gradle-wrapper.properties",
  "src/NuGet.Config",
  ".terraformrc",
  ".direnvrc",
  ".netrc",
  "venv/pip.conf",
  ".cargo/config.toml",
  "sub/.cargo/config",
  ".config/git/config",
  ".hg/hgrc",
  ".pre-commit-config.yaml",
  ".Rprofile",
])("the tool write refuses the control file %s before it creates a folder", async (path) => {
  const root = await tempFolder();
  const result = await callTool(writeTool({ root }), { path, content: "x" });
  expect(textOf(result)).toBe(
    `${path} cannot be written: ${path.replace(/(\.(?:vscode|reeve)|hooks|plugins|\.config\/git)\/.*/, "$1")} is a control file, which other programs execute or obey; ask a person to change it`,
  );
  expect(await readdir(root)).toEqual([]);
});
