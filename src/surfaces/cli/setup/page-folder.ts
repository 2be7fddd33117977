import { existsSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../assembly/package-root.ts";

/** Returns the folder of the built page. `undefined` in a checkout in which `npm run build:page` has not been run. */
export function builtPage(): string | undefined {
  const folder = join(packageRoot, "dist/page");
  return existsSync(join(folder, "index.html")) ? folder : undefined;
}
