// `npm run release:check [FOLDER]`: proves that the package can be published. Writes its SBOM and its licence list, and fails if its
// contents, types, licences or size are not as promised, or if it does not open a golden store.
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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
import {
  consumerProblems,
  contentProblems,
  filesBelow,
  goldenProblems,
  manifestOf,
  noticeProblems,
  publishAdvice,
  resolutionProblems,
} from "./package-check.ts";

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

/** What is wrong with a packed file and with the tree in which it is installed, by the name of the check. */
async function* problemsOf(
  repository: string,
  file: string,
  tree: string,
): AsyncIterable<{ readonly check: string; readonly problems: readonly string[] }> {
  const manifest = await manifestOf(tree);
  const notice = await readFile(join(tree, "dist/bundled-licences.txt"), "utf8");
  yield { check: "contents", problems: contentProblems(await filesBelow(tree), manifest) };
  yield { check: "publint", problems: await publishAdvice(file) };
  yield {
    check: "types for node16 and bundler (attw)",
    problems: await resolutionProblems(file, manifest, repository),
  };
  yield { check: "programs that import every path", problems: await consumerProblems(tree, repository) };
  yield { check: "licences of bundled code", problems: noticeProblems(notice) };
  yield { check: "golden stores", problems: await goldenProblems(tree, repository, dirname(tree)) };
}

if (import.meta.main) {
  const repository = fileURLToPath(new URL("..", import.meta.url));
  const [output = join(repository, "release")] = process.argv.slice(2);
  const folder = await mkdtemp(join(tmpdir(), "reeve-release-"));
  // npm names the package of a tree after its folder.
  const tree = join(folder, "reeve");
  try {
    const file = await packedFile(repository, folder);
    await installTree(repository, tree, file);
    const { figures, problems: exceeded } = await writeRelease(tree, output);
    process.stdout.write(`${figures}\n`);
    const all = [...exceeded];
    for await (const { check, problems } of problemsOf(repository, file, tree)) {
      process.stdout.write(`${problems.length === 0 ? "ok" : "FAILED"}  ${check}\n`);
      all.push(...problems);
    }
    for (const problem of all) process.stderr.write(`${problem}\n`);
    if (all.length > 0) process.exitCode = 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
