import { readFileSync } from "node:fs";

/** The version in the manifest of this package. The manifest is equally far from the source and from the build. */
export function packageVersion(): string {
  const manifest = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { readonly version: string }).version;
}
