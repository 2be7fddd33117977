import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { openRuntime, type Agent } from "../../src/entries/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { openWorkspace } from "../../src/workspace/workspace.ts";
import { casesOf } from "../effort.ts";
import { testFolders } from "./folders.ts";

const files = {
  "AGENTS.md": "Rules.",
  ".reeve/agents/a.md": "---\ntools: all\n---\nAgent a.",
  ".reeve/guardrails/g.mjs":
    'globalThis.guardrailLoads = (globalThis.guardrailLoads ?? 0) + 1; export default { name: "g", onInput: () => ({ decision: "allow" }) };',
  ".reeve/skills/s/SKILL.md": "---\nname: s\ndescription: d\n---\nBody.",
  ".reeve/settings.json": '{ "model": "scripted/x" }',
};

const reloads = casesOf(1_000, 100);

describe("the reload of a workspace", () => {
  test(`${reloads} reloads of unchanged workspace files load each module once and keep memory constant`, async () => {
    const { project, home, write } = await testFolders();
    await write(files);
    const loads = globalThis as { guardrailLoads?: number };
    delete loads.guardrailLoads;
    const workspace = await openWorkspace({
      cwd: project,
      home,
      env: {},
      trust: "always",
      resolveModel: () => scriptedModel(["x"]),
    });
    const heap = async (): Promise<number> => {
      await setImmediate();
      globalThis.gc?.();
      return process.memoryUsage().heapUsed;
    };
    const reload = async (count: number): Promise<void> => {
      for (let index = 0; index < count; index++) {
        await workspace.reload();
        if (index % 10 === 0) await workspace.agent("a");
      }
    };
    await reload(reloads / 10);
    const before = await heap();
    await reload((reloads * 9) / 10);
    const growth = (await heap()) - before;
    expect(loads.guardrailLoads).toBe(1);
    // A reading that was kept would need many times as much.
    expect(growth).toBeLessThan(2_000_000 + 7_000 * reloads);
    expect(process.listenerCount("SIGHUP")).toBe(0);
  });

  test("an invocation in progress keeps its agent after reload(), and the next agent has the new files", async () => {
    const { project, home, write } = await testFolders();
    await write(files);
    const model = scriptedModel(["one", "two"]);
    const workspace = await openWorkspace({
      cwd: project,
      home,
      env: {},
      trust: "always",
      resolveModel: () => model,
    });
    const before = (await workspace.agent("a")) as Agent;
    await write({ ".reeve/agents/a.md": "Agent with new text." });
    await workspace.reload();
    const after = (await workspace.agent("a")) as Agent;
    await using runtime = await openRuntime({ sameName: "replace" });
    await before.invoke("Hi", { runtime });
    await after.invoke("Hi", { runtime });
    expect(JSON.stringify(model.calls[0])).toContain("Agent a.");
    expect(JSON.stringify(model.calls[1])).toContain("Agent with new text.");
  });

  test("an invalid file leaves the workspace unchanged after reload()", async () => {
    const { project, home, write } = await testFolders();
    await write(files);
    const workspace = await openWorkspace({ cwd: project, home, env: {}, trust: "always" });
    await write({ ".reeve/settings.json": '{ "model": 5 }' });
    await expect(workspace.reload()).rejects.toThrow('invalid setting "model"');
    expect(workspace.settings.model).toBe("scripted/x");
  });

  test("SIGHUP reloads a workspace, and the callback receives the error of a failed reload", async () => {
    const { project, home, write } = await testFolders();
    await write(files);
    const workspace = await openWorkspace({ cwd: project, home, env: {}, trust: "always" });
    const failed = Promise.withResolvers<unknown>();
    const stop = workspace.reloadOnSignal("SIGHUP", failed.resolve);
    await write({ ".reeve/settings.json": '{ "model": "scripted/y" }' });
    process.emit("SIGHUP");
    await workspace.reload();
    expect(workspace.settings.model).toBe("scripted/y");
    await write({ ".reeve/settings.json": "{" });
    process.emit("SIGHUP");
    expect(await failed.promise).toMatchObject({ code: "invalid_argument" });
    stop();
    expect(process.listenerCount("SIGHUP")).toBe(0);
  });

  test.for([
    ["throws at import", 'throw new Error("broken");', "could not be loaded: broken"],
    ["never finishes its import", "await new Promise(() => {});", "did not load in 50 ms"],
    ["has a syntax error", "export default {", "could not be loaded"],
    ["exports nothing", "export const x = 1;", "export a guardrail with a name as default"],
  ] as const)("a guardrail file that %s is an error that names the file", async ([, text, message]) => {
    const { project, home, write } = await testFolders();
    await write({ ".reeve/guardrails/bad.mjs": text });
    const opening = openWorkspace({
      cwd: project,
      home,
      env: {},
      trust: "always",
      importTimeoutMs: message.includes("50 ms") ? 50 : 60_000,
    });
    await expect(opening).rejects.toThrow(message);
    await expect(opening).rejects.toThrow(join(project, ".reeve/guardrails/bad.mjs"));
  });
});
