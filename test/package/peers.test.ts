import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { repository, runNode } from "../gates/run-node.ts";

/** The module that the harness gives to every adapter, reduced to what an adapter may use of it. */
const scriptModule = `
  export const INSTRUCTIONS = "You are a test agent.";
  export const PROMPT = "Go.";
  export class Script {
    deltas = 3;
    toolCalls = 0;
    next(lastCallId) {
      if (lastCallId !== null) return { tool: false, text: "done" };
      return { tool: true, id: "call_0", name: "lookup", args: { i: 0 }, json: '{"i":0}' };
    }
    tool({ i }) {
      this.toolCalls += 1;
      return JSON.stringify({ i, status: "ok" });
    }
    delta(index) {
      return "tok" + index + " ";
    }
  }
`;

/** Executes an adapter as the harness does, and prints what the harness would check. */
const harness = `
  import { pathToFileURL } from "node:url";
  import { Script } from "./lib/script.mjs";
  const { meta, load, create } = await import(pathToFileURL(process.argv[2]).href);
  const script = new Script();
  const agent = await create(await load(), script);
  let [first, deltas] = [0, 0];
  const outputs = [await agent.run(), await agent.run(() => (first += 1))];
  const text = await agent.stream?.((kind) => (deltas += kind === "delta" ? 1 : 0));
  const hasDisk = (agent.diskBytes?.() ?? 0) > 0;
  await agent.close?.();
  console.log(JSON.stringify({ packages: meta.pkgs, outputs, toolCalls: script.toolCalls, first, deltas, text, hasDisk }));
`;

const adapters = (await readdir(join(repository, "bench/peers"))).filter((file) =>
  file.endsWith(".adapter.mjs"),
);

test("the comparison with other frameworks finds two adapters", () => {
  expect(adapters).toHaveLength(2);
});

test.for(adapters)(
  "the adapter %s of the comparison with other frameworks executes one turn of its script",
  async (file) => {
    // The adapter finds the script and a folder for its files where the harness has them, and imports the published package.
    const folder = await mkdtemp(join(inject("installed").project, "peers-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
    await cp(join(repository, "bench/peers"), join(folder, "fw/reeve"), { recursive: true });
    await mkdir(join(folder, "scratch"));
    await mkdir(join(folder, "lib"));
    await writeFile(join(folder, "lib/script.mjs"), scriptModule);
    await writeFile(join(folder, "harness.mjs"), harness);
    const adapter = join(folder, "fw/reeve", file);
    const { code, stdout, stderr } = await runNode([join(folder, "harness.mjs"), adapter], folder);
    expect(code === 0 || stderr).toBe(true);
    const isDurable = file.includes("sqlite");
    expect(JSON.parse(stdout)).toEqual({
      packages: ["reeve"],
      outputs: ["done", "done"],
      toolCalls: 2,
      first: 1,
      deltas: isDurable ? 0 : 3,
      ...(!isDurable && { text: "tok0 tok1 tok2 " }),
      hasDisk: isDurable,
    });
  },
);
