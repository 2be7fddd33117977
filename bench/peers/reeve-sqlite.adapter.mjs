import { mkdtempSync, rmSync, statSync } from "node:fs";
import { create as createOn, load } from "./reeve.adapter.mjs";

export const meta = { label: "reeve (SQLite)", pkgs: ["reeve"], durable: true };
export { load };

export async function create(lib, script) {
  const folder = mkdtempSync(new URL("../../scratch/reeve-", import.meta.url).pathname);
  const path = `${folder}/reeve.db`;
  const agent = await createOn(lib, script, `sqlite:${path}`);
  return {
    run: (onFirst) => agent.run(onFirst),
    diskBytes: () =>
      ["", "-wal"].reduce(
        (sum, tail) => sum + (statSync(path + tail, { throwIfNoEntry: false })?.size ?? 0),
        0,
      ),
    async close() {
      await agent.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
