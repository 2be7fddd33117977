import { Fault } from "../kernel/index.ts";

/**
 * Loads a module that needs an optional package. Throws `dependency_missing` if the package is not installed, with
 * a message that says who needs it and how to install it. Any other error is thrown unchanged.
 */
export async function needingPackage<Module>(
  name: string,
  user: string,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load();
  } catch (cause) {
    if (!isMissingPackage(cause, name)) throw cause;
    throw new Fault("dependency_missing", `${user} needs the package ${name}: npm install ${name}`, {
      cause,
    });
  }
}

/** Whether an error says that this package is not installed, and not one that it needs itself. */
export function isMissingPackage(error: unknown, name: string): boolean {
  const { code, message } = error as Partial<NodeJS.ErrnoException>;
  const isNotFound = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
  return isNotFound && message?.includes(`'${name}'`) === true;
}
