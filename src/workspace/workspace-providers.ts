import { createRequire } from "node:module";
import { join } from "node:path";
import { installedAddress, providerPackages } from "../capabilities/index.ts";
import { Fault } from "../kernel/index.ts";
import { Coverage, findPackage, loadModule, type TrustedProject } from "./files/index.ts";

/** Returns the hashes of the packages of model providers that only the project has, for a decision of trust. */
export async function providerHashes(project: string): Promise<Readonly<Record<string, string>>> {
  const hashes: [string, string][] = [];
  for (const name of providerPackages) {
    if (installedAddress(name) !== undefined) continue;
    const coverage = await coverageOf(name, project);
    if (coverage !== undefined) hashes.push([name, coverage.hash()]);
  }
  return Object.fromEntries(hashes);
}

/**
 * Returns a function that loads the package of a model provider from a project. It throws if the decision of the
 * user does not cover the current state of the package. With `always`, the caller trusts any state.
 */
export function providerLoader(
  project: string,
  decision: TrustedProject | "always" | undefined,
  timeoutMs: number,
): (name: string) => Promise<object | undefined> {
  return async (name) => {
    const path = mainFile(name, project);
    if (path === undefined) return undefined;
    if (decision === "always") return loadModule({ path, root: project }, timeoutMs);
    const coverage = decision === undefined ? undefined : await coverageOf(name, project);
    if (coverage !== undefined && coverage.hash() === decision?.providers?.[name])
      return loadModule({ path, root: project, covered: coverage.files }, timeoutMs);
    const state = decision === undefined ? "the project is not trusted" : "you did not trust it as it is now";
    throw new Fault(
      "permission_denied",
      `the package ${name} of ${project} is not loaded, because ${state}; run reeve trust, or npm install ${name} where Reeve is installed`,
    );
  };
}

async function coverageOf(name: string, project: string): Promise<Coverage | undefined> {
  const folder = await findPackage(name, project);
  if (folder === undefined) return undefined;
  const coverage = new Coverage(project);
  await coverage.addPackage(folder);
  return coverage;
}

/** Returns the main file of a package of a project, or `undefined` if the project does not have it. */
function mainFile(name: string, project: string): string | undefined {
  try {
    return createRequire(join(project, "_")).resolve(name);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}
