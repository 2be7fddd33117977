import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { entryOf, FileReader, readTextFile } from "../../src/workspace/files/text/bounded-file.ts";
import { parseMarkdown } from "../../src/workspace/files/text/front-matter.ts";
import { parseYaml } from "../../src/workspace/files/text/yaml-text.ts";
import { Notices } from "../../src/workspace/files/notices.ts";
import { findPlaces } from "../../src/workspace/files/places.ts";
import { testFolders } from "./folders.ts";

describe("files of a workspace", () => {
  test("a workspace file is read without its byte order mark and with line feeds only", async () => {
    const { project, write } = await testFolders();
    await write({ "a.md": "\uFEFFone\r\ntwo\rthree" });
    expect(await readTextFile(join(project, "a.md"), { maxBytes: 100 })).toMatchObject({
      text: "one\ntwo\nthree",
      isCut: false,
    });
  });

  test("a long workspace file is cut between characters", async () => {
    const { project, write } = await testFolders();
    await write({ "a.md": "aä€😀".repeat(1_000) });
    for (let maxBytes = 1; maxBytes < 12; maxBytes++) {
      const file = await readTextFile(join(project, "a.md"), { maxBytes });
      expect(file).toMatchObject({ isCut: true, bytes: 10_000 });
      expect(file?.text).not.toContain("\uFFFD");
    }
  });

  test("a link out of the project, a cyclic link, a pipe and a folder are notices and count as absent files", async () => {
    const { project, user, write } = await testFolders();
    await write({ "~/.ssh/id_rsa": "the key" });
    await symlink(join(user, ".ssh/id_rsa"), join(project, "leak.md"));
    await symlink(join(project, "loop.md"), join(project, "loop.md"));
    execFileSync("/usr/bin/env", ["mkfifo", join(project, "pipe.md")]);
    await mkdir(join(project, "folder.md"));
    const notices = new Notices();
    const reader = new FileReader(notices);
    const names = ["leak.md", "loop.md", "pipe.md", "folder.md", "absent.md"];
    for (const name of names)
      expect(await reader.read(join(project, name), { maxBytes: 100, within: project })).toBeUndefined();
    expect(notices.all.map(({ path }) => path)).toEqual(names.slice(0, 4).map((name) => join(project, name)));
    expect(notices.all[0]?.message).toContain(`leads outside ${project}`);
    expect(notices.all[1]?.message).toContain("a link that leads to itself");
  });

  test("a workspace link that stays inside the project is followed", async () => {
    const { project, write, link } = await testFolders();
    await write({ "docs/rules.md": "rules" });
    await link("AGENTS.md", "docs/rules.md");
    const file = await readTextFile(join(project, "AGENTS.md"), { maxBytes: 100, within: project });
    expect(file?.text).toBe("rules");
  });

  test.for(["..", "../x", "a/b", "a..b", "", ".hidden", "a\0b", "x".repeat(65), "C:\\x"])(
    "the file name %j is refused in a workspace",
    (name) => {
      expect(() => entryOf("/folder", name, "profile name")).toThrow("invalid profile name");
    },
  );
});

describe("front matter of a workspace file", () => {
  test("front matter is separated from the body, and a text without front matter is a body", () => {
    expect(parseMarkdown("---\na: 1\nb: [x, y]\n---\n\nBody\n---\nmore", "f.md")).toEqual({
      data: { a: 1, b: ["x", "y"] },
      body: "Body\n---\nmore",
    });
    expect(parseMarkdown("Body only", "f.md")).toEqual({ data: {}, body: "Body only" });
    expect(parseMarkdown("---\n---\nBody", "f.md")).toEqual({ data: {}, body: "Body" });
  });

  test.for([
    ["an unclosed front matter", "---\na: 1\nBody", "closing line --- is missing"],
    ["a list", "---\n- a\n---\n", "expected a mapping"],
    ["an unknown alias", "---\na: *b\n---\n", "invalid YAML in the front matter of f.md"],
    ["repeated keys", "---\na: 1\na: 2\n---\n", "invalid YAML"],
  ] as const)("%s as the front matter of a file is an error that names the file", ([, text, message]) => {
    expect(() => parseMarkdown(text, "f.md")).toThrow(message);
    expect(() => parseMarkdown(text, "f.md")).toThrow("f.md");
  });

  test("YAML bombs in front matter are refused: aliases that expand, deep nesting and long texts", () => {
    const levels = "bcdefghij"
      .split("")
      .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${"abcdefghi"[index]}`).join(", ")}]`);
    const laughs = ["a: &a [x]", ...levels].join("\n");
    expect(() => parseYaml(laughs, "bomb.yaml")).toThrow("invalid YAML in bomb.yaml");
    expect(() => parseYaml("[".repeat(10_000), "bomb.yaml")).toThrow("invalid YAML in bomb.yaml");
    expect(() => parseYaml(`a: ${"x".repeat(20_000)}`, "bomb.yaml")).toThrow("longer than 16384 bytes");
  });

  test("a key __proto__ in front matter does not change other objects", () => {
    const { data } = parseMarkdown("---\n__proto__: { polluted: true }\n---\n", "f.md");
    expect(Object.keys(data)).toEqual(["__proto__"]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe("the folders of a workspace", () => {
  test("the project of a workspace is the nearest folder with .reeve, else the root of the repository", async () => {
    const { project, home, write } = await testFolders();
    await write({
      "packages/a/.reeve/settings.json": "{}",
      "packages/a/src/x.ts": "",
      "packages/b/x.ts": "",
    });
    const a = await findPlaces({ cwd: join(project, "packages/a/src"), home });
    expect(a).toMatchObject({ project: join(project, "packages/a"), instructionsRoot: project });
    const b = await findPlaces({ cwd: join(project, "packages/b"), home });
    expect(b).toMatchObject({ project, projectFolder: join(project, ".reeve"), instructionsRoot: project });
  });

  test("the .reeve folder of the user does not make the home folder a project", async () => {
    const { user, home } = await testFolders();
    const places = await findPlaces({ cwd: user, home });
    expect(places.projectFolder).toBeUndefined();
  });

  test("the .reeve folder of the user does not make a project if it is a link to a folder with dotfiles", async () => {
    const { user } = await testFolders();
    await mkdir(join(user, "dotfiles/reeve"), { recursive: true });
    await mkdir(join(user, "work"));
    await rm(join(user, ".reeve"), { recursive: true });
    await symlink("dotfiles/reeve", join(user, ".reeve"));
    const home = join(user, ".reeve");
    expect((await findPlaces({ cwd: user, home })).projectFolder).toBeUndefined();
    expect((await findPlaces({ cwd: join(user, "work"), home })).project).toBe(join(user, "work"));
  });

  test("the search for the project of a workspace ends at the user's home folder", async () => {
    const { user, home } = await testFolders();
    await mkdir(join(user, "../.reeve"));
    await mkdir(join(user, "work"));
    expect((await findPlaces({ cwd: join(user, "work"), home })).project).toBe(join(user, "work"));
  });

  test("a profile of a workspace must exist unless it is ephemeral, and its name is one part of a path", async () => {
    const { project, home, write } = await testFolders();
    await write({ "~/.reeve/profiles/work/SOUL.md": "" });
    const find = (profile: string, ephemeral = false) =>
      findPlaces({ cwd: project, home, profile, ephemeral });
    expect((await find("work")).profile).toEqual({
      name: "work",
      folder: join(home, "profiles/work"),
      ephemeral: false,
    });
    await expect(find("other")).rejects.toThrow("profile other does not exist");
    expect((await find("other", true)).profile).toMatchObject({ ephemeral: true });
    await expect(find("../../etc", true)).rejects.toThrow("invalid profile name");
  });

  test("a working folder of a workspace that does not exist is an error", async () => {
    const { project, home } = await testFolders();
    await writeFile(join(project, "x"), "");
    await rm(join(project, "x"));
    await expect(findPlaces({ cwd: join(project, "x"), home })).rejects.toThrow("does not exist");
  });
});
