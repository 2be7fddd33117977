// Builds the documentation as a site in site/dist: `npm run docs`. It needs no network. `--check` then looks for links,
// anchors and pictures that lead nowhere, and for API pages without words; `--serve` shows the site.
import { cp, glob, mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { build, preview } from "astro";
import { subpaths, writeApiPages } from "./api-pages.ts";
import { deadLinks, wordlessPages } from "./check.ts";
import { siteConfig } from "./config.ts";
import { output, prepared, repository } from "./paths.ts";

const flags = new Set(process.argv.slice(2));
const unknown = [...flags].find((flag) => flag !== "--check" && flag !== "--serve");
if (unknown !== undefined) throw new Error(`unknown option ${unknown}: expected --check or --serve`);

process.env["ASTRO_TELEMETRY_DISABLED"] = "1";
// Astro takes these variables for its own, so that those of a shell or a test runner would build pages without a search.
process.env["NODE_ENV"] = "production";
for (const name of ["DEV", "PROD", "MODE", "SSR"]) Reflect.deleteProperty(process.env, name);

for (const folder of [prepared.api, prepared.pictures]) await rm(folder, { recursive: true, force: true });
const config = siteConfig([...(await subpaths()).keys()]);
await writeApiPages();
await copyPictures();
await build(config);
process.stdout.write(`${output}\n`);

if (flags.has("--check")) {
  const dead = await deadLinks(output);
  const wordless = await wordlessPages(output);
  const counts = [`${dead.length} dead links`, `${wordless.length} API pages without words`];
  process.stdout.write(`${[...dead, ...wordless, ...counts].join("\n")}\n`);
  if (dead.length + wordless.length > 0) process.exitCode = 1;
}
if (flags.has("--serve")) {
  const { host = "localhost", port } = await preview(config);
  process.stdout.write(`http://${host}:${port}\n`);
}

async function copyPictures(): Promise<void> {
  for await (const file of glob("**/*.{png,svg}", { cwd: join(repository, "docs") })) {
    const place = join(prepared.pictures, file);
    await mkdir(dirname(place), { recursive: true });
    await cp(join(repository, "docs", file), place);
  }
  await cp(join(repository, "web/public/icon.svg"), join(prepared.pictures, "icon.svg"));
}
