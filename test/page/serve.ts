// Serves the page with the agents of the tests until it is killed. Arguments: a folder and a port, 0 for a free one.
import { company, soloists } from "./company.ts";
import { PageServer } from "./page-server.ts";
import { Stage } from "./stage.ts";

const [folder = "", port = "0"] = process.argv.slice(2);
const stage = new Stage();
const server = new PageServer((root) => [company(stage, root), ...soloists(stage)], {
  folder,
  port: Number(port),
});
await server.start();
process.send?.(server.url);
