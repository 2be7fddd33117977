import { cp, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundle } from "../../build/bundle.ts";
import { repository, runNode } from "../gates/run-node.ts";

let root = "";

/** A copy of what is built, bundled as it is when it is published, and named `reeve` for those inside it. */
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "reeve-published-"));
  for (const part of ["dist", "package.json", "LICENSE", "examples"])
    await cp(join(repository, part), join(root, part), { recursive: true });
  await rm(join(root, "examples/package.json"));
  await symlink(join(repository, "node_modules"), join(root, "node_modules"));
  await bundle(root);
});

afterAll(() => rm(root, { recursive: true, force: true }));

async function run(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runNode(args, root);
  expect(code === 0 || stderr).toBe(true);
  return stdout;
}

describe("the package as it is published", () => {
  test("everything that is exported is there, and there is one of each class", async () => {
    const { exports } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
      readonly exports: Readonly<Record<string, string>>;
    };
    const paths = Object.keys(exports).filter((path) => path !== "./package.json");
    const code = `
      for (const path of ${JSON.stringify(paths)}) await import("reeve" + path.slice(1));
      const { Fault } = await import("reeve");
      const kernel = await import("reeve/kernel");
      const { registerArchitecture } = await import("reeve/architectures");
      const { Agent } = await import("reeve");
      registerArchitecture("echo", () => ({ name: "echo", thinks: false, declaredWorkers: () => ({}), async *run(session, deps, prompt) { session.output = prompt; } }));
      const { output } = await new Agent({ name: "e", architecture: "echo" }).invoke("heard");
      console.log(Fault === kernel.Fault, output);
    `;
    expect(await run("--input-type=module", "--eval", code)).toBe("true heard\n");
  });

  test("its files are few", async () => {
    const code = `
      import { registerHooks } from "node:module";
      const seen = new Set();
      registerHooks({ resolve(specifier, context, next) { const found = next(specifier, context); seen.add(found.url); return found; } });
      await import("reeve");
      console.log([...seen].filter((url) => url.startsWith("file:")).length);
    `;
    expect(Number(await run("--input-type=module", "--eval", code))).toBeLessThan(60);
  });

  test("a run is killed and goes on in another process", async () => {
    expect(await run("examples/03-resume.ts")).toContain("each part was done once");
  });

  test("the command line finds its own files", async () => {
    expect(await run("dist/surfaces/cli/main.js", "demo", "--pace", "40")).toContain(
      "No answer was paid for twice.",
    );
  });
});
