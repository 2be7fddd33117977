// Does what the README tells a new user, in an empty project and on the Node that starts this: node build/try-readme.ts [PACKED]
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);
const repository = fileURLToPath(new URL("..", import.meta.url));

/** Returns the packed file of the clone. There must be exactly one. */
async function onlyPacked(): Promise<string> {
  const [file, ...others] = (await readdir(repository)).filter((name) => /^reeve-.+\.tgz$/u.test(name));
  if (file === undefined || others.length > 0)
    throw new Error(`expected one packed file in ${repository}; run npm pack, and delete older ones`);
  return join(repository, file);
}

/** The first program of the README. */
async function firstProgram(): Promise<string> {
  const readme = await readFile(join(repository, "README.md"), "utf8");
  const [, program] = /^```ts\n(.*?)^```$/msu.exec(readme) ?? [];
  if (program === undefined) throw new Error("README.md has no program; expected a block marked as ts");
  return program;
}

/** Installs the packed file in an empty project, runs the first program there, and then the demo. */
async function tryReadme(packed: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-readme-"));
  const run = async (program: string, ...args: string[]): Promise<string> => {
    process.stdout.write(`$ ${program} ${args.join(" ")}\n`);
    const { stdout } = await execute(program, args, { cwd: folder, maxBuffer: 2 ** 26 });
    return stdout;
  };
  try {
    await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
    await run("npm", "install", "--no-audit", "--no-fund", packed, "zod");
    const program = await firstProgram();
    await writeFile(join(folder, "first.ts"), program);
    const said = await run(process.execPath, "first.ts");
    for (const [, text = ""] of program.matchAll(/\bprints (.+)$/gmu))
      if (!said.includes(text))
        throw new Error(`the program of the README printed ${said}; expected ${text}`);
    const command = join(folder, "node_modules/reeve/dist/surfaces/cli/main.js");
    process.stdout.write(await run(process.execPath, command, "--version"));
    await run(process.execPath, command, "demo", "--exit", "--pace", "50");
    process.stdout.write(`The commands of the README work on Node ${process.versions.node}.\n`);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

const [packed] = process.argv.slice(2);
await tryReadme(packed === undefined ? await onlyPacked() : resolve(packed));
