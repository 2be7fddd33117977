import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openRuntime, type Agent } from "../../src/entries/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { changeMemoryFile } from "../../src/workspace/files/memory/memory-file.ts";
import { openWorkspace } from "../../src/workspace/workspace.ts";
import { testFolders } from "./folders.ts";

describe("memory files", () => {
  test("a change of a memory file replaces a text that occurs once, or adds at the end, and returns the difference", async () => {
    const { home } = await testFolders();
    const change = (old: string, added: string) =>
      changeMemoryFile(home, { file: "MEMORY.md", old, new: added });
    expect(await change("", "- one")).toContain("+- one");
    await change("", "- two");
    expect(await change("- one", "- 1")).toMatch(/-- one\n\+- 1/u);
    expect(await change("", "- two")).toBe("");
    expect(await readFile(join(home, "MEMORY.md"), "utf8")).toBe("- 1\n- two\n");
    await expect(change("absent", "x")).rejects.toThrow("does not contain this text");
    await expect(change("- ", "x")).rejects.toThrow("contains this text 2 times");
    expect(await readdir(home)).toEqual(["MEMORY.md"]);
  });

  test("a memory file never grows over its limit, and can shrink to it", async () => {
    const { home, write } = await testFolders();
    const grow = changeMemoryFile(home, { file: "USER.md", old: "", new: "x".repeat(9_000) });
    await expect(grow).rejects.toThrow("the limit is 8192");
    await write({ "~/.reeve/USER.md": `start ${"y".repeat(9_000)}` });
    expect(await changeMemoryFile(home, { file: "USER.md", old: "start ", new: "" })).not.toBe("");
  });

  test("concurrent changes of a memory file are applied one after another, and all of them are kept", async () => {
    const { home } = await testFolders();
    const changes = Array.from({ length: 50 }, (_, index) =>
      changeMemoryFile(home, { file: "MEMORY.md", old: "", new: `- line ${index}.` }),
    );
    await Promise.all(changes);
    expect((await readFile(join(home, "MEMORY.md"), "utf8")).trim().split("\n")).toHaveLength(50);
  });

  test("a memory file that another process is writing is refused, and the lock of a dead process is removed", async () => {
    const { home } = await testFolders();
    const lock = join(home, "MEMORY.md.lock");
    await writeFile(lock, String(process.ppid));
    const change = () => changeMemoryFile(home, { file: "MEMORY.md", old: "", new: "x" });
    await expect(change()).rejects.toMatchObject({ code: "agent_busy" });
    await writeFile(lock, "4194303");
    expect(await change()).not.toBe("");
  });

  test.for(["", "x", "0", "-1"])(
    "a memory file's lock with the content %j that a crash left is removed, and the lock of a live process is named",
    async (content) => {
      const { home } = await testFolders();
      const lock = join(home, "MEMORY.md.lock");
      await writeFile(lock, content);
      expect(await changeMemoryFile(home, { file: "MEMORY.md", old: "", new: "x" })).not.toBe("");
      expect(await readdir(home)).toEqual(["MEMORY.md"]);
      await writeFile(lock, String(process.ppid));
      const held = changeMemoryFile(home, { file: "MEMORY.md", old: "", new: "y" });
      await expect(held).rejects.toThrow(`process ${process.ppid} writes this file at the moment`);
      expect(await readdir(home)).toEqual(["MEMORY.md", "MEMORY.md.lock"]);
    },
  );

  test("an agent changes its memory file with the memory tool: an event has the difference, and the next prompt the text", async () => {
    const { project, home, write } = await testFolders();
    await write({ "~/.reeve/agents/keeper.md": "---\ntools: [update_memory_file]\n---\nKeep the memory." });
    const input = { file: "MEMORY.md", old: "", new: "Ada likes tea." };
    const model = scriptedModel([{ toolCalls: [{ name: "update_memory_file", input }] }, "Done.", "Again."]);
    const workspace = await openWorkspace({
      cwd: project,
      home,
      env: {},
      settings: { model: "scripted/x", permissions: { allow: ["update_memory_file"] } },
      resolveModel: () => model,
    });
    const agent = (await workspace.agent("keeper")) as Agent;
    await using runtime = await openRuntime();
    const run = await agent.submit("Remember it", { runtime });
    expect((await run.result()).status).toBe("completed");
    let written: unknown;
    for await (const event of run.events({ fromSeq: 0 })) if (event.type === "memory_write") written = event;
    expect(written).toMatchObject({ data: { kind: "file", file: "MEMORY.md" } });
    expect(JSON.stringify(written)).toContain("+Ada likes tea.");
    await agent.invoke("Hi", { runtime });
    expect(JSON.stringify(model.calls[2])).toContain("Ada likes tea.");
  });

  test("an ephemeral profile has no tool that writes memory", async () => {
    const { project, home, write } = await testFolders();
    await write({ "~/.reeve/agents/keeper.md": "---\ntools: [update_memory_file]\n---\nKeep the memory." });
    const workspace = await openWorkspace({ cwd: project, home, env: {}, profile: "guest", ephemeral: true });
    await expect(workspace.agent("keeper")).rejects.toThrow('unknown tool "update_memory_file"');
  });
});
