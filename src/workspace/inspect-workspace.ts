import { Fault } from "../kernel/index.ts";
import { loadWorkspace, type LoadedWorkspace } from "./files/index.ts";
import { checkWorkspaceOptions, loadingOptions, type WorkspaceOptions } from "./workspace-options.ts";

/** The files of a workspace, which were read without loading any code. */
export interface InspectedWorkspace extends LoadedWorkspace {
  /** Why the project does not run in its current state: it has changed since it was trusted. Absent if it runs. */
  readonly lostTrust?: string;
}

/**
 * Reads the files of a workspace. It loads no module, extension or package, starts no program and writes nothing. A
 * project that has lost its trust is read like a project that is not trusted.
 */
export async function inspectWorkspace(
  options: Pick<WorkspaceOptions, "cwd" | "home" | "profile" | "env"> = {},
): Promise<InspectedWorkspace> {
  checkWorkspaceOptions(options);
  const loading = loadingOptions(options);
  try {
    return await loadWorkspace({ ...loading, trust: "stored" });
  } catch (error) {
    if (!Fault.is(error) || !("lostTrust" in (error.details ?? {}))) throw error;
    return { ...(await loadWorkspace({ ...loading, trust: "never" })), lostTrust: error.message };
  }
}
