import { glob, readFile } from "node:fs/promises";
import { dirname, join, normalize, relative } from "node:path";
import { prepared, repository } from "./paths.ts";

/** A page of the site: a document, a program of `examples/`, or a page of the API. */
export interface Source {
  /** Address of the page without slashes at its ends, such as `guides/agents`. The start page is `index`. */
  readonly id: string;
  /** Path of the file from the root of the repository. */
  readonly file: string;
  readonly markdown: string;
}

const suffix = /(?:^|\/)README\.md$|\.md$/u;

/** Reads everything that is a page of the site. The documents keep their folders, and `docs/README.md` is the start page. */
export async function readSources(): Promise<readonly Source[]> {
  const documents = await readAll(repository, ["docs/**/*.md", "*.md"], (file) =>
    file.startsWith("docs/")
      ? file.slice("docs/".length).replace(suffix, "") || "index"
      : `contributing/${file.replace(suffix, "").toLowerCase()}`,
  );
  // README.md introduces the repository, and AGENTS.md is for programs.
  const pages = documents.filter(({ file }) => file !== "README.md" && file !== "AGENTS.md");
  const guides = await readAll(repository, ["examples/**/*.md"], (file) => file.replace(suffix, ""));
  const programs = await readAll(repository, ["examples/**/*.{ts,py}"], (file) =>
    file.replace(/\.\w+$/u, ""),
  );
  const api = await readAll(prepared.api, ["**/*.md"], (file) => `api/${file.replace(suffix, "")}`);
  return [
    ...pages,
    ...guides.filter(({ file }) => !file.includes("node_modules")),
    ...programs.filter(({ file }) => !/node_modules|\.d\.ts$/u.test(file)).map(asPage),
    ...api.map((page) => ({ ...page, id: page.id.replace(/\/$/u, ""), file: join("api", page.file) })),
  ];
}

async function readAll(
  root: string,
  patterns: readonly string[],
  idOf: (file: string) => string,
): Promise<readonly Source[]> {
  const found: Source[] = [];
  for await (const file of glob(patterns, { cwd: root, exclude: ["**/node_modules/**"] }))
    found.push({ id: idOf(file), file, markdown: await readFile(join(root, file), "utf8") });
  return found.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** Makes a page of a program. Its first comment says what it shows. */
function asPage(program: Source): Source {
  const language = program.file.endsWith(".py") ? "py" : "ts";
  const comments = program.markdown.split("\n").filter((line) => !line.startsWith("#!"));
  const first = comments.findIndex((line) => !/^(?:\/\/|#) ?/u.test(line));
  const about = comments.slice(0, Math.max(first, 0)).map((line) => line.replace(/^(?:\/\/|#) ?/u, ""));
  const markdown = `# ${program.file}\n\n${about.join("\n")}\n\n\`\`\`\`${language}\n${program.markdown}\n\`\`\`\`\n`;
  return { ...program, markdown };
}

/** A page as Starlight needs it: the first heading is its title, and links lead to addresses of the site. */
export interface Page {
  readonly id: string;
  readonly file: string;
  readonly title: string;
  readonly description: string;
  readonly body: string;
}

/** Turns a source into a page. An error names a link that leads to no page, before it becomes a dead one. */
export function pageOf(source: Source, ids: ReadonlyMap<string, string>): Page {
  const lines = source.markdown.split(/\r?\n/u);
  const at = lines.findIndex((line) => line.startsWith("# "));
  if (at === -1) throw new Error(`${source.file} has no title: expected a first line such as # Agents`);
  const [, subpath = "", name] = /^api\/(reeve(?:\/[\w/-]+)?)\/[\w-]+\/(\w+)\.md$/u.exec(source.file) ?? [];
  const title = name ?? plain((lines[at] ?? "").slice(2));
  // The page of a function begins with its signature, and that of a name for authors of stores with a mark.
  const text = lines
    .slice(at + 1)
    .join("\n")
    .trim();
  const [first = ""] = text
    .replace(/^(`{3,})[\s\S]*?\n\1\s*/u, "")
    .replace(/^\*\*`Advanced`\*\*\s*/u, "")
    .split("\n\n");
  const description = /^[[\w*`]/u.test(first) ? plain(first.replaceAll("\n", " ")) : title;
  let fence: string | undefined;
  const body = lines.map((line, index) => {
    if (index === at)
      return name === undefined
        ? ""
        : `${plain(line.slice(2))}, exported by [\`${subpath}\`](${addressOf(`api/${subpath}`)}).`;
    const [, mark] = /^\s*(`{3,}|~{3,})/u.exec(line) ?? [];
    if (mark !== undefined && (fence === undefined || mark.startsWith(fence)))
      fence = fence === undefined ? mark : undefined;
    return fence === undefined ? withPictures(withLinks(line, source, ids), source) : line;
  });
  return { id: source.id, file: source.file, title, description, body: body.join("\n") };
}

/** Removes the marks of Markdown and keeps its text. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/\[([^\]]+)\]\([^)]*\)/gu, "$1")
    .replaceAll(/[`*]|\\(?=[<>_])/gu, "")
    .trim();
}

function withLinks(line: string, source: Source, ids: ReadonlyMap<string, string>): string {
  return line.replaceAll(/(?<!!\[[^\]]*)\]\(([^()\s#]*)(#[^()\s]*)?\)/gu, (link, path: string, hash = "") => {
    if (path === "" || /^[a-z]+:/u.test(path)) return link;
    const file = normalize(join(dirname(source.file), path)).replace(/\/$/u, "");
    const id = ids.get(file) ?? ids.get(join(file, "README.md"));
    if (id === undefined) throw new Error(`${source.file} links to ${path}, which is no page of the site`);
    return `](${addressOf(id)}${hash as string})`;
  });
}

export function addressOf(id: string): string {
  return id === "index" ? "/" : `/${id.toLowerCase()}/`;
}

/** Turns a picture into one per theme, if a file for the dark theme exists beside the one for the light theme. */
function withPictures(line: string, source: Source): string {
  return line.replaceAll(/!\[([^\]]*)\]\(([^()\s]+)\)/gu, (_, alt: string, path: string) => {
    const file = relative("docs", join(dirname(source.file), path));
    const picture = (address: string, theme: string): string =>
      `<img src="/${address}" alt="${alt.replaceAll('"', "&quot;")}" loading="lazy"${theme} />`;
    if (!file.endsWith("-light.png")) return picture(file, "");
    const dark = file.replace(/-light\.png$/u, "-dark.png");
    return `${picture(file, ' class="in-light"')}${picture(dark, ' class="in-dark"')}`;
  });
}
