import { existsSync } from "node:fs";
import { join } from "node:path";
import { pageFolder } from "../../server/page-files.ts";

/** Returns the folder of the built page. `undefined` in a checkout where `npm run build:page` was not executed. */
export function builtPage(): string | undefined {
  return existsSync(join(pageFolder, "index.html")) ? pageFolder : undefined;
}
