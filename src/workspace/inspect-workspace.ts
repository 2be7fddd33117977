import { Fault } from "../kernel/index.ts";
import { loadWorkspace, type LoadedWorkspace } from "./files/index.ts";
import { checkWorkspaceOptions, loadingOptions, type WorkspaceOptions } from "./workspace-options.ts";

/** The files of a workspace, read without loading any code. */
export interface InspectedWorkspace extends LoadedWorkspace {
  /** Why the project does not run as it is now: it has changed since it was trusted. Absent if it runs. */
  readonly lostTrust?: string;
}

/**
 * Reads the files of a workspace. No module, extension or package is loaded, no program is started, and nothing is written. A
 * project that has lost its trust is read as one that is not trusted.
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
