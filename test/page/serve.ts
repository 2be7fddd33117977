// Serves the page with the agents of the tests until it is killed. Arguments: a folder and a port, 0 for a free one.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Agent, tool } from "../../src/entries/index.ts";
import { company, soloists } from "./company.ts";
import { PageServer } from "./page-server.ts";
import { Stage } from "./stage.ts";

const [folder = "", port = "0"] = process.argv.slice(2);
const stage = new Stage();
const light = tool({
  name: "light",
  description: "Switches the light on. It ends the process until the folder has a file named corrected.",
  inputSchema: { type: "object", properties: {} },
  execute: () => {
    if (!existsSync(join(folder, "corrected"))) process.kill(process.pid, "SIGKILL");
    return "on";
  },
});
const fuse = new Agent({
  name: "fuse",
  model: stage.actor([{ calls: [{ tool: "light", input: {} }] }, { text: "The light is on." }]),
  tools: [light],
});
const server = new PageServer((root) => [company(stage, root), ...soloists(stage), fuse], {
  folder,
  port: Number(port),
  crashLoopLimit: 2,
});
await server.start();
process.send?.(server.url);
