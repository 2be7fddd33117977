import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  Application,
  Comment,
  OptionDefaults,
  TSConfigReader,
  type DeclarationReflection,
  type TypeDocOptions,
} from "typedoc";
import type { PluginOptions } from "typedoc-plugin-markdown";
import { prepared, repository } from "./paths.ts";

/** The subpaths of the package with the declaration file of each, such as `reeve/tools` and `dist/entries/tools.d.ts`. */
export async function subpaths(): Promise<ReadonlyMap<string, string>> {
  const { exports } = JSON.parse(await readFile(join(repository, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, string>>;
  };
  const modules = Object.entries(exports).filter(([, file]) => file.endsWith(".js"));
  return new Map(
    modules.map(([name, file]) => [join("reeve", name), join(repository, file.replace(/\.js$/u, ".d.ts"))]),
  );
}

/** Writes a Markdown page for every public name, and one for every subpath, from the declaration files that the package contains. */
export async function writeApiPages(): Promise<void> {
  const modules = await subpaths();
  const markdown: PluginOptions = {
    hideBreadcrumbs: true,
    hidePageHeader: true,
    useCodeBlocks: true,
    parametersFormat: "table",
    indexFormat: "table",
  };
  const options: TypeDocOptions = {
    entryPoints: [...modules.values()],
    tsconfig: join(repository, "site/tsconfig.api.json"),
    plugin: ["typedoc-plugin-markdown"],
    outputs: [{ name: "markdown", path: prepared.api }],
    router: "member",
    readme: "none",
    name: "API",
    excludeExternals: true,
    disableSources: true,
    // A name that only authors of stores, engines and test harnesses need has this mark on its page.
    modifierTags: [...OptionDefaults.modifierTags, "@advanced"],
    // Types that no entry exports are shown by name, without a page of their own.
    validation: { notExported: false, invalidLink: true, invalidPath: true, rewrittenLink: true },
    treatValidationWarningsAsErrors: true,
    logLevel: "Warn",
  };
  const app = await Application.bootstrapWithPlugins({ ...options, ...markdown }, [new TSConfigReader()]);
  const project = await app.convert();
  if (project === undefined) throw new Error("the declaration files have errors: run npx tsc -b first");
  const names = new Map([...modules].map(([name, file]) => [entryName(file), name]));
  const contents = await moduleContents();
  for (const module of project.children ?? []) describe(module, names, contents);
  app.validate(project);
  await app.generateOutputs(project);
  if (app.logger.hasErrors()) throw new Error("the pages of the API have errors, which are listed above");
}

function entryName(file: string): string {
  return /([\w-]+)\.d\.ts$/u.exec(file)?.[1] ?? file;
}

/** What each subpath contains, from the table at the end of the page of all names. */
async function moduleContents(): Promise<ReadonlyMap<string, string>> {
  const page = await readFile(join(repository, "docs/reference/reference.md"), "utf8");
  const [, table = ""] = page.split("## Other subpaths");
  const rows = [...table.matchAll(/^\| (`reeve[^|]+) \| ([^|]+) \|/gmu)];
  const contents = rows.flatMap(([, names = "", text = ""]) =>
    (names.match(/[\w/]+/gu) ?? []).map((name): [string, string] => [name, `${text}.`]),
  );
  return new Map([
    ["reeve", "What most programs need: agents, tools, runs, sessions and budgets."],
    ...contents,
  ]);
}

/** Gives a module the name of its subpath, and a sentence about it. */
function describe(
  module: DeclarationReflection,
  names: ReadonlyMap<string, string>,
  contents: ReadonlyMap<string, string>,
): void {
  const name = names.get(module.name);
  if (name === undefined) throw new Error(`${module.name} is no entry of the package`);
  const text = contents.get(name);
  if (text === undefined)
    throw new Error(
      `docs/reference/reference.md does not say what ${name} contains: add it to "Other subpaths"`,
    );
  module.name = name;
  module.comment = new Comment([{ kind: "text", text }]);
}
