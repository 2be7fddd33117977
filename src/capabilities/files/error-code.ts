/** Returns the `code` of a system error, such as `ENOENT`. Functions of `node:os` have it in `info`. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return undefined;
  if (error.code !== "ERR_SYSTEM_ERROR" || !("info" in error)) return error.code;
  const { code } = error.info as { readonly code: string };
  return code;
}

/** Returns `undefined` for the error that a file does not exist. Other errors are thrown. */
export function absent(error: unknown): undefined {
  if (["ENOENT", "ENOTDIR", "EISDIR"].includes(codeOf(error) ?? "")) return undefined;
  throw error;
}
