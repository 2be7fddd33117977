import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repository, runNode } from "../gates/run-node.ts";

interface CodeBlock {
  /** Of the opening fence, from 1. */
  readonly line: number;
  readonly code: string;
}

/** As strict as the repository, but a snippet may declare what it does not use. */
const config = {
  extends: join(repository, "tsconfig.base.json"),
  compilerOptions: {
    allowImportingTsExtensions: true,
    composite: false,
    declaration: false,
    noEmit: true,
    noUnusedLocals: false,
    rewriteRelativeImportExtensions: false,
    skipLibCheck: true,
    types: ["node"],
  },
  include: ["*.ts"],
};

/** The blocks marked `ts` or `typescript`. A fence in a longer fence is text. */
export function codeBlocks(markdown: string): readonly CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: { readonly fence: string; readonly isCode: boolean; readonly line: number } | null = null;
  let code: string[] = [];
  for (const [index, text] of markdown.split(/\r?\n/u).entries()) {
    const [, fence = "", info = ""] = /^\s*(`{3,}|~{3,})\s*([^`]*)$/u.exec(text) ?? [];
    if (open === null) {
      if (fence === "") continue;
      open = { fence, isCode: /^(?:ts|typescript)\b/u.test(info), line: index + 1 };
      code = [];
    } else if (fence.startsWith(open.fence) && info === "") {
      if (open.isCode) blocks.push({ line: open.line, code: code.join("\n") });
      open = null;
    } else code.push(text);
  }
  return blocks;
}

/** Compiles every block as a module of its own that imports `reeve` as a user does. Complaints name document and line. */
export async function complaints(documents: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const blocks = Object.entries(documents).flatMap(([document, markdown]) =>
    codeBlocks(markdown).map((block) => ({ document, ...block })),
  );
  if (blocks.length === 0) return [];
  const folder = await mkdtemp(join(tmpdir(), "reeve-blocks-"));
  try {
    await symlink(join(repository, "node_modules"), join(folder, "node_modules"));
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
    for (const [index, { line, code }] of blocks.entries())
      await writeFile(join(folder, `${index}.ts`), "\n".repeat(line) + code);
    const tsc = join(repository, "node_modules/typescript/bin/tsc");
    const { code, stdout } = await runNode([tsc, "-p", folder, "--pretty", "false"], folder);
    const found = stdout
      .split("\n")
      .filter((text) => text.includes("error TS"))
      .map((text) =>
        text.replace(/^(\d+)\.ts\((\d+),\d+\)/u, (_, index, line) => `${blocks[index]?.document}:${line}`),
      );
    if (code !== 0 && found.length === 0) throw new Error(`the compiler failed: ${stdout}`);
    return found;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
