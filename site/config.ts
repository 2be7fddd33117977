import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import starlight from "@astrojs/starlight";
import type { StarlightUserConfig } from "@astrojs/starlight/types";
import type { AstroInlineConfig } from "astro";
import { passthroughImageService } from "astro/config";
import { readContents, type PageGroup } from "../src/surfaces/cli/docs/contents.ts";
import { output, prepared, repository } from "./paths.ts";
import { addressOf } from "./sources.ts";

type Items = NonNullable<StarlightUserConfig["sidebar"]>;

function itemsOf({ title, pages }: PageGroup): Items {
  const items = pages.map((page) => ({
    label: page.title,
    link: addressOf(page.path.replace(/(?:\/README)?\.md$/u, "")),
  }));
  return title === undefined ? items : [{ label: title, collapsed: true, items }];
}

/** The doors in the order of `docs/README.md`. The site has pages that the package lacks: the API, and those for contributors. */
function sidebar(subpaths: readonly string[]): Items {
  const api = subpaths.map((name) => ({ label: name, link: addressOf(`api/${name}`) }));
  const more: Readonly<Record<string, Items>> = {
    Reference: [{ label: "API", collapsed: true, items: api }],
    Contributing: [
      { label: "How to contribute", link: addressOf("contributing/contributing") },
      { label: "Security", link: addressOf("contributing/security") },
      { label: "Design notes", link: addressOf("notes") },
    ],
  };
  const doors = readContents(readFileSync(join(repository, "docs/README.md"), "utf8"));
  return doors.map(({ title, groups }) => ({
    label: title,
    items: [...groups.flatMap(itemsOf), ...(more[title] ?? [])],
  }));
}

/** How Astro builds the site. `subpaths` are those of the package, each of which has a page in the API. */
export function siteConfig(subpaths: readonly string[]): AstroInlineConfig {
  return {
    configFile: false,
    logLevel: "error",
    root: fileURLToPath(new URL(".", import.meta.url)),
    outDir: output,
    publicDir: prepared.pictures,
    cacheDir: fileURLToPath(new URL("../node_modules/.cache/site/astro", import.meta.url)),
    trailingSlash: "always",
    image: { service: passthroughImageService() },
    // Another tool needs an older version of this package, which is at the top of node_modules. Astro's own one is bundled.
    vite: { environments: { prerender: { resolve: { noExternal: ["cookie"] } } } },
    integrations: [
      starlight({
        title: "Reeve",
        favicon: "/icon.svg",
        customCss: ["./src/styles/site.css"],
        sidebar: sidebar(subpaths),
        pagination: false,
      }),
    ],
  };
}
