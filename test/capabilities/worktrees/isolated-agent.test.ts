import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Agent, OrchestratorAgent } from "../../../src/entries/index.ts";
import { fileTools } from "../../../src/entries/tools.ts";
import type { Event, EventType } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { setUp } from "../../runtime/runtime-setup.ts";
import { testRepository } from "./repository.ts";

function only<Type extends EventType>(events: readonly Event[], type: Type): readonly Event<Type>["data"][] {
  return events.filter((event): event is Event<Type> => event.type === type).map(({ data }) => data);
}

test("an isolated agent writes into its worktree, and its work is a commit object outside its branch", async () => {
  const { path, trees, git, write } = testRepository();
  const base = git("rev-parse HEAD");
  write("b.txt", "not committed\n");
  write(".env", "KEY=1\n");
  write("node_modules/x/index.js", "x\n");
  const { runtime, events } = await setUp();
  const model = scriptedModel([
    {
      toolCalls: [
        { name: "write", input: { path: "a.txt", content: "changed\n" } },
        { name: "write", input: { path: "new/d.txt", content: "new\n" } },
        { name: "read", input: { path: join(path, "a.txt") } },
        { name: "read", input: { path: "b.txt" } },
      ],
    },
    "done",
  ]);
  const coder = new Agent({
    name: "coder",
    model,
    instructions: "Write code.",
    tools: fileTools({ root: path }),
    isolation: { worktree: { repository: path, folder: trees } },
  });
  const run = await runtime.submit(coder, "Change a.");
  const result = await run.result();
  expect(result.error).toBeNull();
  expect(result.toolCalls.map(({ output }) => output)).toEqual([
    { type: "text", text: "replaced a.txt: 8 bytes" },
    { type: "text", text: "wrote new/d.txt: 4 bytes" },
    {
      type: "text",
      text: expect.stringContaining(
        `is in ${path}, from which this task is isolated: use a.txt in its folder`,
      ),
    },
    { type: "text", text: "b" },
  ]);
  const { runId } = run;
  const log = await events(runId);
  const [opened] = only(log, "worktree_open");
  const [work] = only(log, "worktree_finish");
  const branch = `reeve/${runId}/t0/coder`;
  expect(opened).toMatchObject({
    branch,
    base,
    from: "main",
    uncommitted: { count: 1, paths: ["b.txt"] },
    ignored: { count: 2, paths: [".env", "node_modules/"] },
    copied: [],
  });
  expect(work).toMatchObject({
    branch,
    base,
    changed: { count: 2, paths: ["a.txt", "new/d.txt"] },
    uncommitted: { count: 2 },
    overlaps: [],
    state: "kept",
  });
  const tree = opened?.path ?? "";
  expect(tree.startsWith(trees)).toBe(true);
  expect(readFileSync(join(tree, "a.txt"), "utf8")).toBe("changed\n");
  expect(git(`show ${work?.commit}:new/d.txt`)).toBe("new");
  expect(git(`rev-parse ${branch}`)).toBe(base);
  expect(git("status --porcelain")).toBe("M b.txt");
  const instructions = JSON.stringify(model.calls[0]?.messages.filter(({ role }) => role === "system"));
  expect(instructions).toContain(String.raw`Write code.\n\nYou work in a git worktree of your own`);
  expect(instructions).toContain("changes that are not committed: b.txt; ignored files: .env, node_modules/");
});

test("a worktree without work is removed with its branch at the end of the task", async () => {
  const { path, trees, git } = testRepository();
  const { runtime, events } = await setUp();
  const reader = new Agent({
    name: "reader",
    model: scriptedModel([{ toolCalls: [{ name: "read", input: { path: "a.txt" } }] }, "done"]),
    tools: fileTools({ root: path, readOnly: true }),
    isolation: { worktree: { repository: path, folder: trees } },
  });
  const run = await runtime.submit(reader, "Read a.");
  expect((await run.result()).output).toBe("done");
  const [work] = only(await events(run.runId), "worktree_finish");
  expect(work).toMatchObject({ state: "removed", changed: { count: 0 } });
  expect(existsSync(work?.path ?? "")).toBe(false);
  expect(git("branch --list reeve/*")).toBe("");
  expect(git("worktree list").split("\n")).toHaveLength(1);
});

test("a lead agent learns what its employees changed in their worktrees, and which files two of them changed", async () => {
  const { path, trees } = testRepository();
  const { runtime } = await setUp();
  const employee = (name: string, files: readonly string[]): Agent =>
    new Agent({
      name,
      model: scriptedModel([
        { toolCalls: files.map((file) => ({ name: "write", input: { path: file, content: name } })) },
        "done",
      ]),
      tools: fileTools({ root: path }),
      isolation: { worktree: { repository: path, folder: trees } },
    });
  const lead = new OrchestratorAgent({
    name: "lead",
    model: scriptedModel([
      { toolCalls: [{ name: "handoff_one", input: { task: "Change a." } }] },
      { toolCalls: [{ name: "handoff_two", input: { task: "Change a and b." } }] },
      "done",
    ]),
    subAgents: [employee("one", ["a.txt"]), employee("two", ["a.txt", "b.txt"])],
  });
  const { toolCalls, runId, error } = await (await runtime.submit(lead, "Work.")).result();
  expect(error).toBeNull();
  const texts = toolCalls.map(({ output }) => (output?.type === "text" ? output.text : ""));
  expect(texts[0]).toMatch(
    new RegExp(
      `^done\n\n\\[Its work is not merged yet\\. It is at commit [0-9a-f]{12} of the branch reeve/${runId}/t1/one, with 1 changed file: a\\.txt\\.\\]$`,
    ),
  );
  expect(texts[1]).toContain(
    "with 2 changed files: a.txt, b.txt. t1 has changed some of them as well: a.txt.]",
  );
});
