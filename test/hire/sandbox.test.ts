import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { expect, inject, test } from "vitest";
import { permissions } from "../../src/agents/index.ts";
import { hiredAgent } from "../../src/assembly/hired-agent.ts";
import { eventsOf, hireWorld, scripted, tempFolder } from "./hire-world.ts";

const bubblewrap = inject("bubblewrap");
const program = "program" in bubblewrap ? bubblewrap.program : "";

/** The folders of the sources, which the demo agent of the tests is loaded from. */
const readable = [resolve("src"), resolve("test"), resolve("node_modules"), resolve("package.json")];

test.skipIf(program === "")(
  "a sandboxed agent writes only its folder and its home, reaches the gateway alone, and sees no other files",
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

test("a hired agent is refused where its sandbox is not available", async () => {
  const world = await hireWorld([{ say: "unused" }]);
  const agent = world.hire({ sandbox: { mode: "enforce", program: "no-such-bubblewrap" } });
  const { status, error } = await (await world.runtime.submit(agent, "Work.")).result();
  expect([status, error?.code]).toEqual(["failed", "dependency_missing"]);
  expect(error?.message).toContain("the program no-such-bubblewrap is not installed");
});
