import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, open, readFile, rename, stat, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { FileRoot } from "../../../src/capabilities/files/file-root.ts";
import { fileState, replaceFile } from "../../../src/capabilities/files/replace-file.ts";
import { tempFolder } from "../tools/call-tool.ts";

const canPin = existsSync("/proc/self/fd");

async function house(isPinned: boolean): Promise<{ root: FileRoot; inside: string; outside: string }> {
  const folder = await tempFolder();
  const [inside, outside] = [join(folder, "inside"), join(folder, "outside")];
  await mkdir(join(inside, "a/b"), { recursive: true });
  await mkdir(outside);
  await writeFile(join(inside, "a/b/file"), "in");
  await writeFile(join(outside, "secret"), "out");
  return { root: new FileRoot(inside, { isPinned }), inside, outside };
}

async function content(root: FileRoot, path: string): Promise<string> {
  const { folder, file } = await root.read(path);
  try {
    return await file.readFile("utf8");
  } finally {
    await file.close();
    await folder.close();
  }
}

const ways = [
  { how: "with pinned folders", isPinned: true, skip: !canPin },
  { how: "with checked paths", isPinned: false, skip: false },
];

describe.for(ways)("FileRoot $how", ({ isPinned, skip }) => {
  describe.skipIf(skip)("R1 (skipped if there is no /proc/self/fd)", () => {
    test("FileRoot opens a path inside the root, in any spelling", async () => {
      const { root, inside } = await house(isPinned);
      for (const path of [
        "a/b/file",
        "./a//b/./file",
        "a/../a/b/file",
        "a/b/../b/file",
        join(inside, "a/b/file"),
      ])
        expect(await content(root, path)).toBe("in");
    });

    test.for([
      "../outside/secret",
      "a/../../outside/secret",
      "a/b/../../../outside/secret",
      "/etc/hosts",
      "..",
      "../inside-not/x",
      "nothing/../../outside/secret",
    ])("R1: FileRoot refuses %s, which leads outside", async (path) => {
      const { root } = await house(isPinned);
      await expect(content(root, path)).rejects.toMatchObject({
        code: expect.stringMatching(/^(permission_denied|not_found|invalid_argument)$/),
      });
      await expect(root.place(path, { create: true })).rejects.toMatchObject({ name: "Fault" });
      expect(existsSync(join(await root.path(), "../inside-not"))).toBe(false);
    });

    test("FileRoot refuses a path with a zero byte", async () => {
      const { root } = await house(isPinned);
      await expect(content(root, "a/b/file\0.txt")).rejects.toMatchObject({ code: "invalid_argument" });
    });

    test("FileRoot follows links that stay inside, and refuses links that lead outside, for reading and writing", async () => {
      const { root, inside, outside } = await house(isPinned);
      await symlink("b", join(inside, "a/near"));
      await symlink(join(inside, "a/b/file"), join(inside, "absolute"));
      await symlink("../../../inside/a/b", join(inside, "a/b/around"));
      await symlink(outside, join(inside, "out"));
      await symlink(join(outside, "secret"), join(inside, "leak"));
      await symlink("../outside/new", join(inside, "dangling"));
      await symlink("loop", join(inside, "loop"));
      expect(await content(root, "a/near/file")).toBe("in");
      expect(await content(root, "absolute")).toBe("in");
      for (const path of ["out/secret", "leak", "a/near/../../out/secret", "dangling"]) {
        await expect(content(root, path)).rejects.toMatchObject({ code: "permission_denied" });
        await expect(root.place(path, { create: true })).rejects.toMatchObject({ code: "permission_denied" });
      }
      await expect(content(root, "loop")).rejects.toThrow("too many links");
      // The path ends inside the root, but leaves it on the way.
      await expect(content(root, "a/b/around/file")).rejects.toMatchObject({ code: "permission_denied" });
      expect(existsSync(join(outside, "new"))).toBe(false);
    });

    test("R3: FileRoot refuses everything that is not a regular file, and does not wait for a pipe", async () => {
      const { root, inside } = await house(isPinned);
      await promisify(execFile)("mkfifo", [join(inside, "pipe")]);
      await expect(content(root, "pipe")).rejects.toThrow("pipe is not a regular file");
      const place = await root.place("pipe");
      await expect(replaceFile(place, Buffer.from("x"), await fileState(place))).rejects.toMatchObject({
        code: "ENXIO",
      });
      await place.folder.close();
      await expect(content(root, "a")).rejects.toThrow("a is a folder");
      await expect(content(root, "a/b/file/more")).rejects.toThrow("file in a/b/file/more is not a folder");
    });

    test("replaceFile() keeps the permissions of a file, but neither setuid nor setgid nor the sticky bit", async () => {
      const { root, inside } = await house(isPinned);
      const path = join(inside, "a/b/file");
      await chmod(path, 0o7755);
      const place = await root.place("a/b/file");
      await replaceFile(place, Buffer.from("new"), await fileState(place));
      await place.folder.close();
      expect((await stat(path)).mode & 0o7777).toBe(0o755);
    });

    test("replaceFile() replaces a whole file and keeps its mode, unless another process changed the file meanwhile", async () => {
      const { root, inside } = await house(isPinned);
      const path = join(inside, "a/b/file");
      const handle = await open(path);
      await handle.chmod(0o640);
      await handle.close();
      const place = await root.place("a/b/file");
      const before = await fileState(place);
      await replaceFile(place, Buffer.from("new"), before);
      expect(await readFile(path, "utf8")).toBe("new");
      expect((await stat(path)).mode & 0o777).toBe(0o640);
      await expect(replaceFile(place, Buffer.from("newer"), before)).rejects.toThrow(
        "another process has changed",
      );
      await place.folder.close();
      expect(await readFile(path, "utf8")).toBe("new");
    });

    test("replaceFile() does not follow a file that became a link after it was looked up", async () => {
      const { root, inside, outside } = await house(isPinned);
      const place = await root.place("a/b/file");
      const before = await fileState(place);
      await unlink(join(inside, "a/b/file"));
      await symlink(join(outside, "secret"), join(inside, "a/b/file"));
      await expect(replaceFile(place, Buffer.from("x"), before)).rejects.toMatchObject({ code: "ELOOP" });
      await place.folder.close();
      expect(await readFile(join(outside, "secret"), "utf8")).toBe("out");
    });
  });
});

describe.skipIf(!canPin)("R2: FileRoot with pinned folders", () => {
  test("FileRoot uses the folder that it looked up, even if the folder is replaced by a link afterwards", async () => {
    const { root, inside, outside } = await house(true);
    await writeFile(join(outside, "file"), "out");
    const place = await root.place("a/b/file");
    await rename(join(inside, "a/b"), join(inside, "a/moved"));
    await symlink(outside, join(inside, "a/b"));
    await replaceFile(place, Buffer.from("mine"), await fileState(place));
    await place.folder.close();
    expect(await readFile(join(inside, "a/moved/file"), "utf8")).toBe("mine");
    expect(await readFile(join(outside, "file"), "utf8")).toBe("out");
    await expect(content(root, "a/b/file")).rejects.toMatchObject({ code: "permission_denied" });
  });

  test("R2: FileRoot neither reads nor writes outside while another process swaps a folder and a link all the time", async () => {
    const { root, inside, outside } = await house(true);
    await writeFile(join(outside, "file"), "out");
    await symlink(outside, join(inside, "a/link"));
    // The two names are exchanged atomically, so that neither is ever missing.
    const swapper = execFile(process.execPath, [
      "--eval",
      `const { renameSync } = require("node:fs");
       process.chdir(process.argv[1]);
       process.stdout.write("go");
       for (;;) {
         renameSync("b", "c"); renameSync("link", "b"); renameSync("b", "link"); renameSync("c", "b");
       }`,
      join(inside, "a"),
    ]);
    await new Promise<void>((resolve) => swapper.stdout?.once("data", () => resolve()));
    const seen = new Set<string>();
    for (let round = 0; round < 400 || (seen.size < 2 && round < 20_000); round++) {
      seen.add(await content(root, "a/b/file").catch((error: { code: string }) => error.code));
      try {
        const place = await root.place("a/b/planted");
        try {
          await replaceFile(place, Buffer.from("x"), await fileState(place));
        } finally {
          await place.folder.close();
        }
      } catch {
        // The access was refused or failed during the swap; only the files outside matter.
      }
    }
    const gone = new Promise((resolve) => swapper.once("exit", resolve));
    swapper.kill("SIGKILL");
    await gone;
    expect(seen).not.toContain("out");
    expect(existsSync(join(outside, "planted"))).toBe(false);
    expect(await readFile(join(outside, "file"), "utf8")).toBe("out");
  });
});
