import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openRuntime, type Agent } from "../../src/entries/index.ts";
import { scriptedModel, type ScriptStep } from "../../src/testing/index.ts";
import { openWorkspace, type WorkspaceOptions } from "../../src/workspace/workspace.ts";
import { testFolders, type TestFolders } from "./folders.ts";

async function opened(
  { project, home }: TestFolders,
  script: readonly ScriptStep[],
  options: WorkspaceOptions = {},
) {
  const model = scriptedModel(script);
  const workspace = await openWorkspace({
    cwd: project,
    home,
    env: {},
    trust: "always",
    settings: { model: "scripted/x" },
    resolveModel: () => model,
    ...options,
  });
  return { model, workspace };
}

const blocker = `export default {
  name: "blocker",
  setup(api) {
    api.on("tool_call", ({ toolName }) => (toolName === "ls" ? { block: true, reason: "ls is blocked here" } : undefined));
  },
};`;

describe("extensions from files", () => {
  test("an extension of a file, of a folder and of a setting is used in the runs of every agent", async () => {
    const folders = await testFolders();
    await folders.write({
      ".reeve/extensions/blocker.mjs": blocker,
      ".reeve/extensions/folder/index.mjs": 'export default { name: "folder", setup() {} };',
      "shared/named.mjs": "export default function named() {}",
      ".reeve/settings.json": '{ "extensions": ["../shared/named.mjs"] }',
    });
    const script = [{ toolCalls: [{ name: "ls", input: {} }] }, "Done."];
    const { workspace, model } = await opened(folders, script);
    expect(workspace.extensions).toEqual(["blocker", "folder", "named"]);
    await using runtime = await openRuntime();
    const agent = (await workspace.agent()) as Agent;
    expect((await agent.invoke("Look", { runtime })).status).toBe("completed");
    expect(JSON.stringify(model.calls[1])).toContain("ls is blocked here");
  });

  test("a changed extension is used after reload(), and an unchanged one is loaded once", async () => {
    const folders = await testFolders();
    const text = (word: string): string => `export default {
      name: "e",
      setup(api) {
        api.on("tool_call", () => ({ block: true, reason: "${word}" }));
      },
    };`;
    await folders.write({ ".reeve/extensions/e.mjs": text("first word") });
    const call = { toolCalls: [{ name: "ls", input: {} }] };
    const { workspace, model } = await opened(folders, [call, "Done.", call, "Done."]);
    await using runtime = await openRuntime({ sameName: "replace" });
    const before = (await workspace.agent()) as Agent;
    await folders.write({ ".reeve/extensions/e.mjs": text("second word") });
    await workspace.reload();
    await before.invoke("Look", { runtime });
    await ((await workspace.agent()) as Agent).invoke("Look", { runtime });
    expect(JSON.stringify(model.calls[1])).toContain("first word");
    expect(JSON.stringify(model.calls[3])).toContain("second word");
  });

  test.for([
    ["throws at import", 'throw new Error("broken");', "could not be loaded: broken"],
    ["never finishes its import", "await new Promise(() => {});", "did not load in 50 ms"],
    ["exports no extension", "export default 5;", "export an extension as default"],
  ] as const)("an extension file that %s is left out with a warning", async ([, text, message]) => {
    const folders = await testFolders();
    await folders.write({ ".reeve/extensions/bad.mjs": text });
    const { workspace } = await opened(
      folders,
      ["x"],
      message.includes("50 ms") ? { importTimeoutMs: 50 } : {},
    );
    expect(workspace.extensions).toEqual([]);
    expect(workspace.notices).toMatchObject([
      { kind: "warning", path: join(folders.project, ".reeve/extensions/bad.mjs") },
    ]);
    expect(workspace.notices[0]?.message).toContain(message);
  });
});

describe("the review of the memory file", () => {
  test("a review updates MEMORY.md after the tool calls of a session, and the next prompt has the new text", async () => {
    const folders = await testFolders();
    await folders.write({ "~/.reeve/settings.json": '{ "memoryReviewEvery": 1 }' });
    const input = { file: "MEMORY.md", old: "", new: "The build takes 4 minutes." };
    const write = { toolCalls: [{ name: "update_memory_file", input }] };
    const script = [{ toolCalls: [{ name: "ls", input: {} }] }, "Done.", write, "done", "Again."];
    const { workspace, model } = await opened(folders, script);
    await using runtime = await openRuntime();
    const agent = (await workspace.agent()) as Agent;
    runtime.register(agent);
    await agent.invoke("How long does the build take?", { runtime });
    const path = join(folders.home, "MEMORY.md");
    await expect.poll(() => readFile(path, "utf8").catch(() => "")).toBe("The build takes 4 minutes.\n");
    await expect.poll(() => model.calls.length).toBe(4);
    await agent.invoke("And now?", { runtime });
    expect(JSON.stringify(model.calls[4])).toContain("The build takes 4 minutes.");
  });

  test("the memory tool changes nothing outside of a review", async () => {
    const folders = await testFolders();
    await folders.write({ "~/.reeve/settings.json": '{ "memoryReviewEvery": 100 }' });
    const input = { file: "MEMORY.md", old: "", new: "Injected." };
    const script = [{ toolCalls: [{ name: "update_memory_file", input }] }, "Done."];
    const { workspace, model } = await opened(folders, script);
    await using runtime = await openRuntime();
    await ((await workspace.agent()) as Agent).invoke("Hi", { runtime });
    expect(JSON.stringify(model.calls[1])).toContain("updated by a review");
    await expect(readFile(join(folders.home, "MEMORY.md"), "utf8")).rejects.toThrow("ENOENT");
  });

  test("a project cannot switch the memory review on without trust", async () => {
    const folders = await testFolders();
    await folders.write({ ".reeve/settings.json": '{ "memoryReviewEvery": 1 }' });
    const { workspace } = await opened(folders, ["x"], { trust: "never" });
    expect(workspace.settings.memoryReviewEvery).toBeUndefined();
    expect(workspace.guarded).toEqual([`${join(folders.project, ".reeve/settings.json")}#memoryReviewEvery`]);
  });
});
