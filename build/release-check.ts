// `npm run release:check [FOLDER]`: writes the SBOM and the licence list of the package, and fails if a limit is exceeded.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  installTree,
  licenceList,
  limits,
  packedFile,
  sbomOf,
  sizeOf,
  treeProblems,
} from "./installed-tree.ts";

/** Writes the SBOM and the licence list of an installed tree to a folder. Returns its figures and the limits that it exceeds. */
export async function writeRelease(
  tree: string,
  output: string,
): Promise<{ readonly figures: string; readonly problems: readonly string[] }> {
  const sbom = await sbomOf(tree);
  const bytes = await sizeOf(tree);
  const licences = licenceList(sbom);
  await mkdir(output, { recursive: true });
  await writeFile(join(output, "sbom.cdx.json"), `${JSON.stringify(sbom, null, 2)}\n`);
  await writeFile(join(output, "licences.txt"), `${licences.join("\n")}\n`);
  const size = `${sbom.components.length} of ${limits.packages} packages, ${bytes} of ${limits.bytes} bytes`;
  return { figures: [...licences, `${size}; see ${output}`].join("\n"), problems: treeProblems(sbom, bytes) };
}

if (import.meta.main) {
  const repository = fileURLToPath(new URL("..", import.meta.url));
  const [output = join(repository, "release")] = process.argv.slice(2);
  const folder = await mkdtemp(join(tmpdir(), "reeve-release-"));
  // npm names the package of a tree after its folder.
  const tree = join(folder, "reeve");
  try {
    await installTree(repository, tree, await packedFile(repository, folder));
    const { figures, problems } = await writeRelease(tree, output);
    process.stdout.write(`${figures}\n`);
    for (const problem of problems) process.stderr.write(`${problem}\n`);
    if (problems.length > 0) process.exitCode = 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
