import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { expect, inject, test } from "vitest";
import { permissions } from "../../src/agents/index.ts";
import { hiredAgent } from "../../src/assembly/hired-agent.ts";
import { agentFile } from "./agent-file.ts";
import {
  afterTest,
  eventsOf,
  found,
  hiredEvents,
  hireWorld,
  poll,
  scripted,
  tempFolder,
} from "./hire-world.ts";

const bubblewrap = inject("bubblewrap");
const program = "program" in bubblewrap ? bubblewrap.program : "";

/** The folders of the sources, which the demo agent of the tests is loaded from. */
const readable = [resolve("src"), resolve("test"), resolve("node_modules"), resolve("package.json")];

test.skipIf(program === "")(
  "a sandboxed hired agent writes only its folder and its home, reaches only the gateway, and sees no other files",
  async () => {
    const outside = await tempFolder();
    await writeFile(join(outside, "secret.txt"), "secret");
    const world = await hireWorld([]);
    const fetching = `fetch("${world.upstream.url}").then(() => "reached", () => "refused")`;
    const attacks = [
      "echo in > in.txt",
      'echo home > "$HOME/home.txt" && echo "home: written"',
      `cat ${outside}/secret.txt`,
      `echo out > ${outside}/out.txt`,
      `node -e '${fetching}.then((text) => console.log("network: " + text))'`,
    ].join("; ");
    world.upstream.answer = scripted([{ run: attacks }, { say: "Done." }]);
    const agent = world.hire({
      sandbox: { mode: "enforce", program, readable },
      permissions: permissions({ mode: "bypass" }),
      env: {},
    });
    const run = await world.runtime.submit(agent, "Attack.");
    const { status, output, error } = await run.result();
    expect([status, output, error]).toEqual(["completed", "Done.", null]);
    expect(await readFile(join(world.folder, "in.txt"), "utf8")).toBe("in\n");
    await expect(readFile(join(outside, "out.txt"), "utf8")).rejects.toThrow("ENOENT");
    const said = JSON.stringify(
      (await eventsOf(run)).flatMap(({ type, data }) => (type === "tool_execution_end" ? [data.result] : [])),
    );
    expect(said).toContain("home: written");
    expect(said).toContain("network: refused");
    expect(said).toContain(`${outside}/secret.txt: No such file or directory`);
  },
);

test.skipIf(program === "")("the demo agent that comes with Reeve works in its sandbox", async () => {
  const world = await hireWorld([{ run: "echo hi > out.txt" }, { say: "Done." }]);
  const agent = hiredAgent({
    name: "coder",
    preset: "demo",
    gateway: world.gateway,
    folder: world.folder,
    sandbox: { mode: "enforce", program },
    permissions: permissions({ allow: ["shell"] }),
  });
  const { status, output, error } = await (await world.runtime.submit(agent, "Write.")).result();
  expect([status, output, error]).toEqual(["completed", "Done.", null]);
  expect(await readFile(join(world.folder, "out.txt"), "utf8")).toBe("hi\n");
});

test.skipIf(program === "")(
  "after kill -9 of its owner, a sandboxed hired agent continues its session in a new sandbox and repeats no command",
  async () => {
    const file = join(await tempFolder(), "reeve.db");
    const world = await hireWorld([{ run: "echo x >> ran.txt; sleep 300" }, { say: "Done." }], {
      store: `sqlite:${file}`,
    });
    const sandbox = { mode: "enforce", program, readable } as const;
    const [node = "", ...args] = agentFile(
      "owner-process",
      file,
      world.upstream.url,
      world.folder,
      "Run it.",
      JSON.stringify(sandbox),
    );
    const owner = spawn(node, args, { stdio: "inherit" });
    afterTest(async () => owner.kill("SIGKILL"));
    const ran = join(world.folder, "ran.txt");
    await poll(async () => readFile(ran, "utf8"));
    owner.kill("SIGKILL");
    await once(owner, "exit");
    world.runtime.register(world.hire({ sandbox, permissions: permissions({ mode: "bypass" }), env: {} }));
    const run = await found(world.runtime, "run_killed");
    const { status, output, error } = await run.result();
    expect([status, output, error]).toEqual(["completed", "Done.", null]);
    expect(await readFile(ran, "utf8")).toBe("x\n");
    expect(await hiredEvents(run)).toEqual(["session_opened", "session_loaded", "prompt_continued"]);
  },
);

test("a hired agent is refused where its sandbox is not available", async () => {
  const world = await hireWorld([{ say: "unused" }]);
  const agent = world.hire({ sandbox: { mode: "enforce", program: "no-such-bubblewrap" } });
  const { status, error } = await (await world.runtime.submit(agent, "Work.")).result();
  expect([status, error?.code]).toEqual(["failed", "dependency_missing"]);
  expect(error?.message).toContain("the program no-such-bubblewrap is not installed");
});
