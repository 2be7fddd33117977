import { chmod, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openRuntime, type Agent } from "../../src/entries/index.ts";
import { messageText } from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { openWorkspace, type Workspace } from "../../src/workspace/workspace.ts";
import { testFolders } from "./folders.ts";

const head = "---\ndescription:   Sorts.\n# a comment\nbudget: { maxCostUsd: 2 }\n---\n";

async function setUp() {
  const { project, home, write } = await testFolders();
  await write({ ".reeve/agents/sorter.md": `${head}\nSort by date.\n` });
  const path = join(project, ".reeve/agents/sorter.md");
  const model = scriptedModel(["Sorted.", "Sorted again."]);
  const env = { REEVE_MODEL: "scripted/x" };
  const open = (): Promise<Workspace> =>
    openWorkspace({ cwd: project, home, env, resolveModel: () => model });
  return { path, project, home, write, open, model };
}

describe("saveInstructions()", () => {
  test("saveInstructions() replaces the body of an agent file, keeps front matter and permissions, and keeps the trust", async () => {
    const { path, open, model } = await setUp();
    await using workspace = await open();
    await workspace.trust();
    await chmod(path, 0o640);
    const { hash = "", instructions } = (await workspace.instructions("sorter")) ?? {};
    expect(instructions).toBe("Sort by date.");
    const saved = await workspace.saveInstructions("sorter", "Sort by name.\n\n---\n\nThen by date.", hash);
    expect(await readFile(path, "utf8")).toBe(`${head.trimEnd()}\n\nSort by name.\n\n---\n\nThen by date.\n`);
    expect((await stat(path)).mode & 0o777).toBe(0o640);
    expect(saved).toMatchObject({ refusal: null });
    expect(saved.hash).not.toBe(hash);
    await using again = await open();
    expect(again.notices.filter(({ message }) => message.includes("has changed"))).toEqual([]);
    const agent = (await again.agent("sorter")) as Agent;
    expect(agent.budget.maxCostUsd).toBe(2);
    await using runtime = await openRuntime({ unknownPrice: "ignore" });
    await agent.invoke("Go", { runtime });
    expect(model.calls[0]?.messages.map(messageText)[0]).toContain("Sort by name.");
    // The changed instructions of one run take the place of the body only.
    await agent.invoke("Go", { runtime, changes: { instructions: "Sort by size." } });
    const [whole = "", changed = ""] = model.calls.map(
      ({ messages: [first] }) => first && messageText(first),
    );
    expect(changed).toBe(whole.replace("Sort by name.\n\n---\n\nThen by date.", "Sort by size."));
  });

  test("saveInstructions() refuses a changed file, a project without trust, a link out of the project and an agent in code", async () => {
    const { path, project, open, write } = await setUp();
    await using untrusted = await open();
    const before = await untrusted.instructions("sorter");
    expect(before).toBeUndefined();
    await untrusted.trust();
    const { hash = "" } = (await untrusted.instructions("sorter")) ?? {};
    await writeFile(path, `${head}\nSort by colour.\n`);
    await expect(untrusted.saveInstructions("sorter", "x", hash)).rejects.toMatchObject({
      code: "version_mismatch",
    });
    expect(await readFile(path, "utf8")).toContain("Sort by colour.");
    await expect(untrusted.saveInstructions("assistant", "x", hash)).rejects.toMatchObject({
      code: "unsupported",
    });
    const { hash: now = "" } = (await untrusted.instructions("sorter")) ?? {};
    await expect(untrusted.saveInstructions("sorter", "x".repeat(300_000), now)).rejects.toMatchObject({
      code: "too_large",
    });
    await untrusted.distrust();
    await expect(untrusted.saveInstructions("sorter", "x", now)).rejects.toMatchObject({
      code: "unsupported",
    });
    await write({ "outside.md": "secret" });
    const outside = join(project, "..", "secret.md");
    await writeFile(outside, "secret");
    await rm(path);
    await symlink(outside, path);
    await using linked = await open();
    await linked.trust();
    await expect(linked.saveInstructions("sorter", "x", now)).rejects.toThrow("has no Markdown file");
    expect(await readFile(outside, "utf8")).toBe("secret");
  });

  test("saveInstructions() refuses instructions that would be read as front matter", async () => {
    const { path, open } = await setUp();
    await writeFile(path, "Sort.\n");
    await using workspace = await open();
    await workspace.trust();
    const { hash = "" } = (await workspace.instructions("sorter")) ?? {};
    await expect(
      workspace.saveInstructions("sorter", "---\nbudget: { maxCostUsd: 99 }\n---\nSort.", hash),
    ).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await readFile(path, "utf8")).toBe("Sort.\n");
  });
});
