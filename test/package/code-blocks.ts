import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { inject } from "vitest";
import { repository, runNode } from "../gates/run-node.ts";

/** A fenced block of a Markdown document. */
export interface Fence {
  /** Line number of the opening fence, from 1. */
  readonly line: number;
  /** First word after the opening fence, such as `ts` or `sh`. Empty if there is none. */
  readonly language: string;
  /** File name in `title="..."` after the language. If present, the block is a file that other blocks of the document may import. */
  readonly title: string | undefined;
  readonly code: string;
}

/** Compiler options of the repository, except that a snippet may declare names that it does not use. */
const config = {
  extends: join(repository, "tsconfig.base.json"),
  compilerOptions: {
    allowImportingTsExtensions: true,
    composite: false,
    declaration: false,
    jsx: "react-jsx",
    noEmit: true,
    noUnusedLocals: false,
    rewriteRelativeImportExtensions: false,
    skipLibCheck: true,
    types: ["node"],
  },
  include: ["**/*.ts", "**/*.tsx"],
};

/** All fenced blocks of a document, in order. A fence inside a longer fence is text. */
export function fences(markdown: string): readonly Fence[] {
  const found: Fence[] = [];
  let open: { readonly fence: string; readonly info: string; readonly line: number } | null = null;
  let code: string[] = [];
  for (const [index, text] of markdown.split(/\r?\n/u).entries()) {
    const [, fence = "", info = ""] = /^\s*(`{3,}|~{3,})\s*([^`]*)$/u.exec(text) ?? [];
    if (open === null) {
      if (fence === "") continue;
      open = { fence, info, line: index + 1 };
      code = [];
    } else if (fence.startsWith(open.fence) && info === "") {
      const [language = ""] = open.info.split(/\s/u);
      const [, title] = /\btitle="([^"]+)"/u.exec(open.info) ?? [];
      found.push({ line: open.line, language, title, code: code.join("\n") });
      open = null;
    } else code.push(text);
  }
  return found;
}

/** The blocks in TypeScript: those marked `ts`, `typescript` or `tsx`. */
export function codeBlocks(markdown: string): readonly Fence[] {
  return fences(markdown).filter(({ language }) => /^(?:ts|typescript|tsx)$/u.test(language));
}

/** Compiles every block as a module of a project in which the package is installed. Each compiler error names document and line. */
export async function complaints(documents: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const blocks = Object.entries(documents).flatMap(([document, markdown], folder) =>
    codeBlocks(markdown).map((block, index) => {
      const ending = block.language === "tsx" ? "tsx" : "ts";
      const file = `${folder}/${block.title ?? `block-${index}.${ending}`}`;
      return { document, file, ...block };
    }),
  );
  if (blocks.length === 0) return [];
  const documentOf = new Map(blocks.map(({ file, document }) => [file, document]));
  const folder = await mkdtemp(join(inject("installed").project, "blocks-"));
  try {
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
    for (const { file, line, code } of blocks) {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), "\n".repeat(line) + code);
    }
    const tsc = join(repository, "node_modules/typescript/bin/tsc");
    const { code, stdout } = await runNode([tsc, "-p", folder, "--pretty", "false"], folder);
    const found = stdout
      .split("\n")
      .filter((text) => text.includes("error TS"))
      .map((text) =>
        text.replace(
          /^(.+?)\((\d+),\d+\)/u,
          (_, file: string, line: string) => `${documentOf.get(file)}:${line}`,
        ),
      );
    if (code !== 0 && found.length === 0) throw new Error(`the compiler failed: ${stdout}`);
    return found;
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
